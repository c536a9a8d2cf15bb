/**
 * Waiting for a delegation with word of how far it is. Limit: ends with the request, the token or the gateway, and
 * never ends the delegation.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { readWhenReady } from "../../../engine/delegations/read.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import type { Context } from "../context.ts";
import { delegationOf, stepOf } from "./delegation-view.ts";

/** Below a minute, at which many clients give a call up whatever it says. */
const MOST_SECONDS = 55;
export const DEFAULT_WAIT_SECONDS = 45;
/** The client hears something that often although nothing happens. */
const SILENCE_SECONDS = 10;
/** And no more often than that. */
const PACE_MS = 250;

export const waitSchema = z
  .number()
  .min(0)
  .max(MOST_SECONDS)
  .describe(`Seconds to wait at most, up to ${MOST_SECONDS}.`);

const isReady = ({ finished, state }: StoredDelegation): boolean => finished || state.endsWith("_required");

export async function waitFor(
  context: Context,
  known: StoredDelegation,
  wait_seconds: number,
  signal: AbortSignal,
): Promise<StoredDelegation> {
  const { broker, principal } = context;
  const { id } = known;
  if (!context.wantsProgress) return readWhenReady(broker, principal, id, { wait_seconds, signal, known });
  const until = performance.now() + wait_seconds * 1000;
  for (let record = known; ; ) {
    const left = (until - performance.now()) / 1000;
    if (isReady(record) || left <= 0 || signal.aborted) return record;
    await context.report(stepOf(delegationOf(record)));
    await sleep(Math.min(PACE_MS, left * 1000), undefined, { signal }).catch(() => {});
    record = await readWhenReady(broker, principal, id, {
      wait_seconds: Math.max(0, Math.min(SILENCE_SECONDS, (until - performance.now()) / 1000)),
      after_version: record.version,
      signal,
    });
  }
}
