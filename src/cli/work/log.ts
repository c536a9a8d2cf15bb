/**
 * The log of `errand work` and `errand relay`: one line per event, without the output of commands. A task's last line
 * names its id, its delegator, its outcome and its duration.
 */
import { budgetText } from "../../client/budget-text.ts";
import { durationText } from "../../client/words.ts";
import type { AgentEvent, Work } from "../../client/work.ts";
import type { CliHost } from "../host.ts";
import { oneLine, type Painter, painter, write } from "../show/output.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { wrapText } from "../show/text.ts";
import { localTime } from "../show/time.ts";

export interface LogOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** The command has --keep-running. */
  readonly mayKeepRunning?: boolean;
}

/** From whom a delegation came, and how long ago its lease began. */
interface Origin {
  readonly delegator?: string;
  readonly durationMs?: number;
}

/** Text on stderr; with `json`, JSON on stdout. */
export function workLog(
  host: CliHost,
  { json, quiet, mayKeepRunning = false }: LogOptions,
): (event: AgentEvent) => void {
  const paint = painter(host, "stderr");
  const originOf = origins();
  const wrapped = (text: string) =>
    host.isTty.stderr ? wrapText(text, terminalWidth(host, "stderr"), "  ") : text;
  return (event) => {
    // A pause is an error of the worker.
    if (quiet && event.type !== "paused") return;
    const origin = originOf(event);
    const line = json
      ? JSON.stringify({ ...asJson(event), ...asJsonOrigin(origin), time: new Date().toISOString() })
      : wrapped(
          `errand: ${paint.dim(localTime(new Date().toISOString()))} ${asText(event, origin, paint, mayKeepRunning)}`,
        );
    // A closed log does not stop the work.
    void write(json ? host.stdout : host.stderr, `${line}\n`).catch(() => undefined);
  };
}

/** Remembers the running delegations, because not every event has the work. */
function origins(): (event: AgentEvent) => Origin {
  const running = new Map<string, { delegator: string; since: number }>();
  return (event) => {
    const id = idOf(event);
    if (id === undefined) return {};
    if (event.type === "leased") {
      const { delegator } = event.work.delegation;
      running.set(id, { delegator, since: performance.now() });
      return { delegator };
    }
    const origin = running.get(id);
    // The work is not over: its release or reply follows.
    if (["cut_off", "usage_refused", "over_budget"].includes(event.type)) return {};
    running.delete(id);
    if (origin === undefined) return {};
    const durationMs = event.type === "replied" ? event.durationMs : performance.now() - origin.since;
    return { delegator: origin.delegator, durationMs };
  };
}

function idOf(event: AgentEvent): string | undefined {
  if ("work" in event) return event.work.delegation.id;
  return "delegationId" in event ? event.delegationId : undefined;
}

const asJsonOrigin = ({ delegator, durationMs }: Origin): object => ({
  ...(delegator && { delegator }),
  ...(durationMs !== undefined && { duration_ms: Math.round(durationMs) }),
});

function asText(
  event: AgentEvent,
  { delegator, durationMs }: Origin,
  paint: Painter,
  mayKeepRunning: boolean,
): string {
  const from = delegator === undefined ? "" : ` from ${delegator}`;
  const after = durationMs === undefined ? "" : ` after ${durationText(durationMs)}`;
  switch (event.type) {
    case "leased":
      return leasedText(event.work, from);
    case "replied": {
      const { reply, state, durationMs, work } = event;
      const { id } = work.delegation;
      if (reply.state === "completed")
        return `${id}${from} ${paint.green("completed")} in ${durationText(durationMs)}`;
      const again = state === "submitted" ? ", queued again" : "";
      const why = reply.error ? `: ${oneLine(reply.error.message, 200)}` : "";
      return `${id}${from} ${paint.red(reply.state)} in ${durationText(durationMs)}${again}${why}`;
    }
    case "parked": {
      const { yellow } = paint;
      const what =
        event.waitsFor === "children" ? `${yellow("waits")} for children` : `${yellow("asks")} a question`;
      return `${event.work.delegation.id}${from} ${what}${after}`;
    }
    case "lost":
      return `${event.delegationId}${from} ${paint.yellow("dropped")}${after}: the lease is lost (${event.reason})${event.blockedMs === undefined ? "" : `; this process was blocked for ${durationText(event.blockedMs)}`}`;
    case "cut_off":
      return `${event.delegationId} ${paint.yellow("stopped")}: the last heartbeat that the broker answered was sent ${wholeSeconds(event.silentMs)} ago; the work is returned when the broker answers`;
    case "usage_refused":
      return `${event.delegationId} ${paint.yellow("no usage reported")}: ${oneLine(event.reason, 200)}`;
    case "over_budget":
      return `${event.delegationId} ${paint.yellow("over budget")}: ${budgetText(event.budget)}; it must end soon`;
    case "canceled":
      return `${event.work.delegation.id}${from} ${paint.yellow("canceled")} by the agent${after}`;
    case "released":
      return `released ${event.delegationId}${from}${after}${event.reason ? `: ${oneLine(event.reason, 200)}` : ""}`;
    case "abandoned":
      return `${event.delegationId}${from} ${paint.yellow("not released")}${after}: its lease will expire`;
    case "paused":
      return `${paint.yellow("paused")}: ${oneLine(event.reason, 200)}; next try in ${durationText(event.delayMs)}`;
    case "resumed":
      return "working again";
    case "retrying":
      return `${paint.yellow("the broker is unavailable")}; next try in ${durationText(event.delayMs)}, later ones at most ${durationText(event.longestDelayMs)} apart: ${oneLine(event.error.message)}${stopsText(event.stopsInMs, mayKeepRunning)}`;
    case "recovered":
      return "the broker is available again";
  }
}

const wholeSeconds = (ms: number): string => durationText(Math.round(ms / 1000) * 1000);

function stopsText(stopsInMs: number | undefined, mayKeepRunning: boolean): string {
  if (stopsInMs === undefined) return "";
  const at = localTime(new Date(Date.now() + stopsInMs).toISOString());
  const how = mayKeepRunning ? " (--keep-running prevents that)" : "";
  return `. If it does not answer by ${at}, running work is stopped${how}`;
}

/** After an answer, the work continues in the attempt that asked. */
function leasedText({ delegation, attempt, answer }: Work, from: string): string {
  if (answer === undefined) return `leased ${delegation.id}${from}, attempt ${attempt}`;
  const by = answer.by === undefined ? "" : ` by ${oneLine(answer.by)}`;
  const again = attempt > 1 ? `, attempt ${attempt}` : "";
  return `resumed ${delegation.id}${from} after ${oneLine(answer.decision ?? "an answer")}${by}${again}`;
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
        waits_for: event.waitsFor,
        interrupt_id: event.interruptId ?? null,
      };
    case "lost":
      return {
        event: event.type,
        delegation_id: event.delegationId,
        reason: event.reason,
        ...(event.blockedMs !== undefined && { blocked_ms: event.blockedMs }),
      };
    case "cut_off":
      return {
        event: event.type,
        delegation_id: event.delegationId,
        silent_ms: Math.round(event.silentMs),
      };
    case "usage_refused":
      return { event: event.type, delegation_id: event.delegationId, reason: event.reason };
    case "over_budget":
      return { event: event.type, delegation_id: event.delegationId, budget: event.budget };
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
    case "paused":
      return { event: event.type, delay_ms: Math.round(event.delayMs), reason: event.reason };
    case "resumed":
      return { event: event.type };
    case "retrying":
      return {
        event: event.type,
        error: event.error.problem,
        delay_ms: Math.round(event.delayMs),
        longest_delay_ms: event.longestDelayMs,
        ...(event.stopsInMs !== undefined && { stops_in_ms: Math.round(event.stopsInMs) }),
      };
    case "recovered":
      return { event: event.type };
  }
}
