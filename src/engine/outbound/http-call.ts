/**
 * Makes one outgoing call if its host has a free slot; counts and logs the outcome.
 */
import type { Counter } from "prom-client";
import { engineTime } from "../../redis/time.ts";
import type { Broker } from "../broker.ts";
import { EgressRefusedError } from "./egress.ts";

/** How long a receiver may fail before it is given up. */
export const FOR_A_DAY_MS = 86_400_000;
const FIRST_MS = 5_000;
const LONGEST_MS = 3_600_000;
const GONE = 410;

/** The delay before the next try of a call that has been failing for `triedForMs`: about as long, at most an hour. */
export const retryAfterMs = (triedForMs: number): number =>
  Math.min(LONGEST_MS, Math.max(FIRST_MS, triedForMs)) * (0.8 + Math.random() * 0.4);

export interface OutboundCall {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Null when the call was accepted; otherwise the status, or the error. */
async function post(
  broker: Broker,
  url: string,
  { headers, body }: OutboundCall,
): Promise<number | string | null> {
  try {
    const status = await broker.egress.post(url, headers, body);
    return status >= 200 && status < 300 ? null : status;
  } catch (error) {
    // Only the code: messages may quote the request.
    const code = error instanceof Error && "code" in error && typeof error.code === "string";
    return error instanceof EgressRefusedError ? error.message : code ? String(error.code) : "no answer";
  }
}

export interface About {
  /** Its name in the log. */
  readonly what: "callback" | "push";
  readonly delegation_id: string;

  readonly delegator: string;
  readonly seq: number;
  readonly url: string;
  /** When the call was first tried, ms by Redis' clock. */
  readonly since: number;
}

export type CallResult = "delivered" | "given_up" | { readonly again_ms: number; readonly failed: boolean };

/** Makes one call. A failing call is retried for a day, then given up. */
export async function httpCall(
  broker: Broker,
  { what, delegation_id, delegator, seq, since, url }: About,
  call: OutboundCall,
): Promise<CallResult> {
  const { host } = new URL(url);
  const counter: Counter<"outcome"> = broker.metrics[what === "push" ? "pushes" : "callbacks"];
  const slot = broker.hostLimiter.acquire(host, delegator);
  if (typeof slot === "number") return { again_ms: slot, failed: false };
  const problem = await post(broker, url, call).finally(slot);
  if (problem === null) {
    counter.inc({ outcome: "delivered" });
    return "delivered";
  }
  // By Redis' clock: a gateway whose clock is a day ahead would give the call up at once.
  const triedFor = (await engineTime(broker.redis, broker.clock)) - since;
  const isOver = triedFor > FOR_A_DAY_MS || problem === GONE;
  counter.inc({ outcome: isOver ? "given_up" : "failed" });
  broker.log.warn(
    { delegation_id, seq, host, problem },
    isOver ? `${what} given up` : `${what} failed; it is retried`,
  );
  return isOver ? "given_up" : { again_ms: broker.callbackRetryMs(triedFor), failed: true };
}
