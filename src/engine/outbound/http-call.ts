/**
 * One outgoing call: made when its host has a place free, its outcome counted and logged.
 */
import type { Counter } from "prom-client";
import { timeOf } from "../../redis/time.ts";
import type { Broker } from "../broker.ts";
import { Refused } from "./egress.ts";

const FOR_A_DAY_MS = 86_400_000;
const FIRST_MS = 5_000;
const LONGEST_MS = 3_600_000;
const GONE = 410;

/** After how long a call is tried again: as long as it has been tried, so ever more rarely, up to an hour. */
export const retryAfterMs = (triedForMs: number): number =>
  Math.min(LONGEST_MS, Math.max(FIRST_MS, triedForMs)) * (0.8 + Math.random() * 0.4);

export interface OutboundCall {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Null when it was taken; else the status, or what went wrong. */
async function post(
  broker: Broker,
  url: string,
  { headers, body }: OutboundCall,
): Promise<number | string | null> {
  try {
    const status = await broker.egress.post(url, headers, body);
    return status >= 200 && status < 300 ? null : status;
  } catch (error) {
    // The code alone: messages may quote what was sent.
    const code = error instanceof Error && "code" in error && typeof error.code === "string";
    return error instanceof Refused ? error.message : code ? String(error.code) : "no answer";
  }
}

export interface About {
  /** What it is called in the log. */
  readonly what: "callback" | "push";
  readonly delegation_id: string;
  /** For whom it is made. */
  readonly delegator: string;
  readonly seq: number;
  readonly url: string;
  /** Since when it is tried, ms by Redis' clock. */
  readonly since: number;
}

export type CallResult = "delivered" | "given_up" | { readonly again_ms: number; readonly failed: boolean };

/** Makes one call; what is not taken is to be tried again, for a day, or given up. */
export async function httpCall(
  broker: Broker,
  { what, delegation_id, delegator, seq, since, url }: About,
  call: OutboundCall,
): Promise<CallResult> {
  const { host } = new URL(url);
  const counter: Counter<"outcome"> = broker.metrics[what === "push" ? "pushes" : "callbacks"];
  const place = broker.hosts.take(host, delegator);
  if (typeof place === "number") return { again_ms: place, failed: false };
  const problem = await post(broker, url, call).finally(place);
  if (problem === null) {
    counter.inc({ outcome: "delivered" });
    return "delivered";
  }
  // By Redis' clock: one that is a day ahead would give the call up at once.
  const triedFor = (await timeOf(broker.redis)) + broker.clock.offset_ms - since;
  const isOver = triedFor > FOR_A_DAY_MS || problem === GONE;
  counter.inc({ outcome: isOver ? "given_up" : "failed" });
  broker.log.warn(
    { delegation_id, seq, host, problem },
    isOver ? `${what} given up` : `${what} failed; tried again later`,
  );
  return isOver ? "given_up" : { again_ms: broker.callbackRetryMs(triedFor), failed: true };
}
