/** The log of `errand work` and `errand relay`: one line per event, without the output of commands. */
import type { AgentEvent } from "../../client/work.ts";
import type { CliHost } from "../host.ts";
import { durationText, oneLine, type Painter, painter, write } from "../show/output.ts";

export interface LogOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/** Text on stderr; with `json`, JSON on stdout. */
export function workLog(host: CliHost, { json, quiet }: LogOptions): (event: AgentEvent) => void {
  const paint = painter(host, "stderr");
  return (event) => {
    if (quiet) return;
    const line = json ? JSON.stringify(asJson(event)) : `errand: ${asText(event, paint)}`;
    // A closed log does not stop the work.
    void write(json ? host.stdout : host.stderr, `${line}\n`).catch(() => undefined);
  };
}

function asText(event: AgentEvent, paint: Painter): string {
  switch (event.type) {
    case "leased":
      return `leased ${event.work.delegation.id}, attempt ${event.work.attempt}`;
    case "replied": {
      const { reply, state, durationMs, work } = event;
      const { id } = work.delegation;
      if (reply.state === "completed")
        return `${id} ${paint.green("completed")} in ${durationText(durationMs)}`;
      const again = state === "submitted" ? ", queued again" : "";
      const why = reply.error ? `: ${oneLine(reply.error.message, 200)}` : "";
      return `${id} ${paint.red(reply.state)} in ${durationText(durationMs)}${again}${why}`;
    }
    case "parked":
      return `${event.work.delegation.id} ${paint.yellow("asks")} a question`;
    case "lost":
      return `${event.delegationId} ${paint.yellow("dropped")}: the lease is lost (${event.reason})`;
    case "canceled":
      return `${event.work.delegation.id} ${paint.yellow("canceled")} by the agent`;
    case "released":
      return `released ${event.delegationId}${event.reason ? `: ${oneLine(event.reason, 200)}` : ""}`;
    case "abandoned":
      return `${event.delegationId} ${paint.yellow("not released")}: its lease will expire`;
    case "retrying":
      return `${paint.yellow("the broker is unavailable")}, retrying: ${oneLine(event.error.message)}`;
    case "recovered":
      return "the broker is available again";
  }
}

function asJson(event: AgentEvent): object {
  switch (event.type) {
    case "leased":
      return { event: event.type, delegation_id: event.work.delegation.id, attempt: event.work.attempt };
    case "replied":
      return {
        event: event.type,
        delegation_id: event.work.delegation.id,
        attempt: event.work.attempt,
        reply_state: event.reply.state,
        state: event.state,
        duration_ms: Math.round(event.durationMs),
        ...(event.reply.error && { error: event.reply.error }),
      };
    case "parked":
      return {
        event: event.type,
        delegation_id: event.work.delegation.id,
        interrupt_id: event.interruptId ?? null,
      };
    case "lost":
      return { event: event.type, delegation_id: event.delegationId, reason: event.reason };
    case "canceled":
      return { event: event.type, delegation_id: event.work.delegation.id };
    case "released":
      return {
        event: event.type,
        delegation_id: event.delegationId,
        ...(event.reason && { reason: event.reason }),
      };
    case "abandoned":
      return { event: event.type, delegation_id: event.delegationId };
    case "retrying":
      return { event: event.type, error: event.error.problem, delay_ms: Math.round(event.delayMs) };
    case "recovered":
      return { event: event.type };
  }
}
