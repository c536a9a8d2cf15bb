/**
 * What a delegation still owes when its move is made: the cancel of its children, calls to who is told of it. The record
 * says so until it is done, so the sweep finishes what a dying gateway began. Limit: at least once; each step may be
 * repeated.
 */
import type { Untold } from "../lifecycle/writer.ts";
import { Script } from "../redis/script.ts";
import { queueCallbacks } from "./callbacks.ts";
import { cancelIfLive } from "./cancel.ts";
import type { Broker } from "./context.ts";
import { report } from "./dispatch.ts";
import { queuePushes } from "./push-delivery.ts";

const AT_ONCE = 50;
/** Longer than a submit may be under way. */
const TOMBSTONE_MS = 3_600_000;

/** KEYS: the record, its tombstone · ARGV: kept for, ms · 1 when it exists; else it never will. */
const tombstoneScript = new Script(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
redis.call('SET', KEYS[2], 1, 'PX', ARGV[1])
return 0`);

export interface Owed {
  readonly cascade?: string | undefined;
  readonly untold?: Untold | undefined;
}

/** Does what is owed; resolves when it is done, or left to the sweep. */
export async function settleOwed(broker: Broker, id: string, owed: Owed): Promise<void> {
  try {
    if (owed.untold) await tell(broker, id, owed.untold);
    if (owed.cascade !== undefined) await cascade(broker, id, owed.cascade);
  } catch (error) {
    report(broker, error, "follow-up not done; the sweep will");
  }
}

/** What the record says is noted as done once it is queued; what came meanwhile is its own move's to see to. */
async function tell(broker: Broker, id: string, { seq, to }: Untold): Promise<void> {
  if (to !== 2) await queueCallbacks(broker, id);
  if (to !== 1) await queuePushes(broker, id);
  await broker.writer.move({ move: "follow_up", id, params: { notified: seq } });
}

/** Cancels the children of a canceled delegation, in the name of whoever canceled it. */
async function cascade(broker: Broker, id: string, by: string): Promise<void> {
  const children = await broker.redis.smembers(broker.shards.ofId(id)?.children(id) ?? "");
  for (let at = 0; at < children.length; at += AT_ONCE) {
    await Promise.all(children.slice(at, at + AT_ONCE).map((child) => cancelChild(broker, child, by, id)));
  }
  await broker.writer.move({ move: "follow_up", id, params: { cascaded: true } });
}

async function cancelChild(broker: Broker, child: string, by: string, parent: string): Promise<void> {
  const keys = broker.shards.ofId(child);
  if (!keys) return;
  const there = await tombstoneScript.run(
    broker.redis,
    [keys.delegation(child), keys.tombstone(child)],
    [TOMBSTONE_MS],
  );
  if (there !== 1) return;
  await cancelIfLive(broker, by, child, { reason: `its parent ${parent} was canceled`, cascade: true });
}
