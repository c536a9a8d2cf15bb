/**
 * Sends a delegation's events to the receivers of its push notification configs, in order, one job for each config. At
 * least once; the receiver recognizes repeats by `webhook-id`. A receiver that fails for a day is given up.
 */
import { withoutBodies } from "../../../events/bodies.ts";
import { compareIds, type Entry, toEntry } from "../../../events/entry.ts";
import { readPage } from "../../../events/stored.ts";
import { readRecord } from "../../../lifecycle/stored-delegation.ts";
import { engineTime } from "../../../redis/time.ts";
import type { StoredPushConfig } from "../../../schema/push-config.ts";
import type { Broker } from "../../broker.ts";
import { httpCall, type OutboundCall } from "../http-call.ts";
import { advance, ensureJobs, type NextEvent, saveState } from "./delivery-state.ts";

/** How long a job may run before other jobs run. */
const RUN_MS = 10_000;

/** A job for each config that has undelivered events. */
export async function pushJobs(broker: Broker, delegation_id: string) {
  const jobs = await ensureJobs(broker, delegation_id);
  return jobs.map(({ push, job }) => ({ kind: "push", delegation_id, config: push, job }) as const);
}

/** Queues these jobs, unless they are queued. */
export async function queuePushes(broker: Broker, delegation_id: string): Promise<void> {
  for (const job of await pushJobs(broker, delegation_id)) await broker.outbound.add(job);
}

interface PushJob {
  readonly delegation_id: string;
  readonly config: string;
  readonly job: number;
}

/** Runs a job. Returns null when no event is left, or the delay before the job runs again, ms. */
export async function deliverPush(
  broker: Broker,
  { delegation_id, config: push, job }: PushJob,
  stopping: AbortSignal,
): Promise<number | null> {
  const endsAt = performance.now() + RUN_MS;
  const isOver = () => stopping.aborted || performance.now() > endsAt;
  let accepted: string | null = null;
  for (;;) {
    const next = await advance(broker, delegation_id, push, job, accepted);
    if (!next) return null;
    if (accepted !== null && isOver()) return 1;
    const sent = await sendEvent(broker, next, isOver);
    switch (sent.kind) {
      case "accepted":
        accepted = next.entry.id;
        break;
      case "later": {
        const { part, failing_since: since, after_ms } = sent;
        await saveState(broker, delegation_id, push, job, { part, since });
        return after_ms;
      }
      case "given_up":
        await saveState(broker, delegation_id, push, job, { part: sent.part, job: "over" });
        return null;
    }
  }
}

/** What became of an event. `part`: how many of its updates were accepted. */
type Sent =
  | { readonly kind: "accepted" }
  | {
      readonly kind: "later";
      readonly part: number;
      /** The delay before the job runs again, ms. */
      readonly after_ms: number;
      /** When its calls began to fail, ms; undefined: none failed. */
      readonly failing_since?: number | undefined;
    }
  | { readonly kind: "given_up"; readonly part: number };

/** Makes the calls of one event, from the first that was not accepted. */
async function sendEvent(broker: Broker, next: NextEvent, isOver: () => boolean): Promise<Sent> {
  const { config, entry } = next;
  const { delegation_id, delegator, seq } = entry;
  const since = next.since ?? (await engineTime(broker.redis, broker.clock));
  const calls = await render(broker, config, entry);
  for (const [part, call] of calls.entries()) {
    if (part < next.part) continue;
    if (part > next.part && isOver()) return { kind: "later", part, after_ms: 1 };
    const about = { what: "push", delegation_id, delegator, seq, url: config.url, since } as const;
    const outcome = await httpCall(broker, about, call);
    if (outcome === "given_up") return { kind: "given_up", part };
    if (outcome === "delivered") continue;
    const { again_ms: after_ms, failed } = outcome;
    return { kind: "later", part, after_ms, failing_since: failed ? since : undefined };
  }
  return { kind: "accepted" };
}

async function* eventsBefore(broker: Broker, { id, shard, delegation_id }: Entry): AsyncGenerator<Entry> {
  const stream = broker.shards.at(shard).delegationEvents(delegation_id);
  for (let position = "0-0"; ; ) {
    const page = await readPage(broker.bulk, stream, position, "0-0");
    for (const [event_id, flat] of page.entries) {
      if (compareIds(event_id, id) >= 0) return;
      yield withoutBodies(toEntry(shard, event_id, flat));
    }
    position = page.position;
    if (page.kind !== "more") return;
  }
}

async function render(broker: Broker, config: StoredPushConfig, entry: Entry): Promise<OutboundCall[]> {
  const { contentType, bodies } = await broker.renderPush(await broker.bodies.load(entry), config.version, {
    record: () => readRecord(broker.redis, broker.shards, entry.delegation_id),
    before: () => eventsBefore(broker, entry),
  });
  const { token, authentication } = config;
  return bodies.map((body, at) => ({
    body,
    headers: {
      "content-type": contentType,
      "user-agent": "errand",
      "webhook-id": `evt_${entry.delegation_id}_${entry.seq}${at === 0 ? "" : `_${at}`}`,
      ...(authentication?.credentials && {
        authorization: `${authentication.scheme} ${authentication.credentials}`,
      }),
      ...(token && { "x-a2a-notification-token": token }),
    },
  }));
}
