/**
 * Cancels the remote tasks of delegations that ended without their relay, for example by a cancel while no relay ran.
 * Limit: of delegations that ended while no relay ran, it finds only the newest of the last day.
 */
import * as z from "zod";
import type { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { retryWhileAway } from "../../relay/backoff.ts";
import { cancelOrphanedTask, ENDED_WITHOUT_AGENT } from "../../relay/orphaned-task.ts";
import type { Remote } from "../../relay/remote.ts";
import { toRemoteError } from "../../relay/remote-error.ts";
import { sleep } from "../../util/timing.ts";

/** How many ended delegations are checked for each error code. */
const RECENT = 50;
const RECENT_MS = 86_400_000;
const AGAIN_MS = 5_000;
const AT_ONCE = 8;
/** How long a relay that holds the lease has to cancel the task itself. */
const SETTLE_MS = 1_000;

const failedSchema = z.looseObject({ error: z.looseObject({ code: z.enum(ENDED_WITHOUT_AGENT) }) });

export interface OrphanOptions {
  readonly delegator: Delegator;
  readonly target: string;
  readonly remote: Remote;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Runs until the signal aborts. A failure is only logged, because the relay works without this. */
export async function cancelOrphanedTasks(options: OrphanOptions): Promise<void> {
  const { delegator, target, say, signal } = options;
  const cancels = new Cancels(options);
  const failed = (error: unknown) => {
    if (!signal.aborted)
      say(
        `cannot watch for delegations that end without a relay; their tasks may continue: ${codeOf(error)}`,
      );
  };
  const found = findRecent(options, cancels).catch(failed);
  try {
    for await (const event of delegator.watch({ target, types: ["DELEGATION_FAILED"] }, { signal })) {
      if ("delegation_id" in event && failedSchema.safeParse(event).success) {
        await cancels.add(z.string().parse(event.delegation_id), SETTLE_MS);
      }
    }
  } catch (error) {
    failed(error);
  }
  await found;
  await cancels.done();
}

async function findRecent({ delegator, target, signal }: OrphanOptions, cancels: Cancels): Promise<void> {
  const known = new Set<string>();
  const search = async () => {
    for (const error_code of ENDED_WITHOUT_AGENT) {
      let left = RECENT;
      for await (const { id, finished_at } of delegator.list({ target, error_code }, { signal })) {
        const isRecent = finished_at && Date.now() - Date.parse(finished_at) < RECENT_MS;
        if (isRecent && !known.has(id)) await cancels.add(id, 0);
        known.add(id);
        left -= 1;
        if (left === 0) break;
      }
    }
  };
  await search();
  // Finds delegations that ended before the event stream was open.
  await sleep(AGAIN_MS, signal);
  await search();
}

class Cancels {
  readonly #options: OrphanOptions;
  readonly #running = new Set<Promise<void>>();

  constructor(options: OrphanOptions) {
    this.#options = options;
  }

  /** Resolves when there is room for another cancel. */
  async add(id: string, afterMs: number): Promise<void> {
    const run = this.#cancel(id, afterMs).finally(() => this.#running.delete(run));
    this.#running.add(run);
    if (this.#running.size >= AT_ONCE) await Promise.race(this.#running);
  }

  async done(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #cancel(id: string, afterMs: number): Promise<void> {
    const { delegator, remote, say, signal } = this.#options;
    try {
      await sleep(afterMs, signal);
      const delegation = await delegator.get(id, { signal });
      await retryWhileAway(signal, () => cancelOrphanedTask(remote, delegation, signal));
    } catch (error) {
      if (signal.aborted) return;
      const why = error instanceof ErrandApiError ? error.code : toRemoteError(error).message;
      say(`${id}: the task was not canceled: ${why}`);
    }
  }
}

const codeOf = (error: unknown): string => (error instanceof ErrandApiError ? error.code : "internal");
