/** Waits for a delegation and reports its progress to the client. The end of a wait never ends the delegation. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { toDelegation } from "../../../engine/delegations/parse.ts";
import { isSettled, readWhenReady } from "../../../engine/delegations/read.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import type { McpContext } from "../context.ts";
import { progressLine } from "./delegation-view.ts";

/** Below a minute, because many clients give up on a call then. */
const MAX_WAIT_SECONDS = 55;
export const DEFAULT_WAIT_SECONDS = 45;
/** Progress is reported at least this often, even without a change. */
const MAX_SILENCE_SECONDS = 10;
/** Progress is reported at most this often. */
const MIN_INTERVAL_MS = 250;

export const waitSchema = z
  .number()
  .min(0)
  .max(MAX_WAIT_SECONDS)
  .describe(`Maximum wait in seconds, at most ${MAX_WAIT_SECONDS}.`);

export async function waitWithProgress(
  context: McpContext,
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
    if (isSettled(record) || left <= 0 || signal.aborted) return record;
    await context.reportProgress(progressLine(toDelegation(record)));
    await sleep(Math.min(MIN_INTERVAL_MS, left * 1000), undefined, { signal }).catch(() => {});
    record = await readWhenReady(broker, principal, id, {
      wait_seconds: Math.max(0, Math.min(MAX_SILENCE_SECONDS, (until - performance.now()) / 1000)),
      after_version: record.get("version"),
      signal,
    });
  }
}
