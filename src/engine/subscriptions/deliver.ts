/**
 * Sends what waits in a lane, in order, until nothing is due. At least once: a notification leaves its lane after its
 * receiver accepted it, and a repeat carries the same id. Limit: a job of the outbound queue wakes it; when the lane is due
 * is in Redis, so a lost job is made again (notifier.ts). A channel that fails for a day, or is gone, is paused.
 */
import type { ChannelKind } from "../../schema/notice.ts";
import { toInstant } from "../../schema/values.ts";
import type { Broker } from "../broker.ts";
import type { Sent } from "./channels/outcome.ts";
import { type Sends, send } from "./channels/send.ts";
import { stillMatters, toDigest, toNotification } from "./notification.ts";
import { untilLoud } from "./quiet.ts";
import type { LaneAt, LaneClaim } from "./store.ts";
import {
  type ChannelState,
  channelOf,
  ignoresQuiet,
  type StoredNotice,
  type StoredSubscription,
} from "./stored-subscription.ts";
import { noteTold } from "./told.ts";

type Needs = Sends &
  Pick<
    Broker,
    | "agents"
    | "links"
    | "callbackRetryMs"
    | "connections"
    | "linkBase"
    | "log"
    | "metrics"
    | "redis"
    | "retentionMs"
    | "shards"
    | "subscriptions"
    | "tokens"
  >;

const FOR_A_DAY_MS = 86_400_000;
/** Longer than one call may take: a lane whose gateway died is taken again after this. */
const CLAIM_MS = 12_000;
/** How long a job may run before other jobs run. */
const RUN_MS = 10_000;
/** The most that one digest counts. */
const MOST = 500;
const AT_ONCE = 50;

export async function deliverNotices(broker: Needs, taken: LaneClaim, stopping: AbortSignal): Promise<null> {
  const endsAt = performance.now() + RUN_MS;
  for (let { claim } = taken; ; ) {
    const found = await broker.subscriptions.store.lane({ ...taken, claim }, MOST, CLAIM_MS);
    if (!found) return null;
    ({ claim } = found);
    if (!(await step(broker, found, { ...taken, claim }))) return null;
    if (!stopping.aborted && performance.now() < endsAt) continue;
    // The rest is due at once, for another job.
    const [first] = found.notices;
    if (first) await broker.subscriptions.store.release({ ...taken, claim });
    return null;
  }
}

/** Returns whether more may be due. */
async function step(broker: Needs, found: LaneAt, held: LaneClaim): Promise<boolean> {
  const { subscription, notices, now } = found;
  const { id, settings, channels, owner, token } = subscription;
  const { lane } = held;
  const n = channelOf(lane);
  const channel = settings.deliver[n];
  const [first] = notices;
  const state = channels[n] ?? {};
  if (!first || !channel) return false;
  const settle = (done: number, due: number | null, next: ChannelState, changes = false) =>
    broker.subscriptions.store.settle(held, first, { done, due, state: next, changes });
  if (state.paused) {
    await settle(0, null, state);
    return false;
  }
  if (token !== "" && !(await broker.tokens.isValid(token))) {
    const problem = `The token with which ${owner} created the subscription was revoked, or has expired.`;
    await settle(0, null, { ...state, since: now, problem, paused: true }, true);
    await broker.subscriptions.changed();
    return false;
  }
  const wait = Math.max(
    first.at + channel.after_seconds * 1000 - now,
    ignoresQuiet(lane) ? 0 : untilLoud(settings.quiet, now),
  );
  if (wait > 0) {
    await settle(0, now + wait, state);
    return false;
  }
  const due = notices.filter(({ at }) => at + channel.after_seconds * 1000 <= now);
  const isDigest = due.length > settings.digest_above;
  const count = isDigest ? due.length : 1;
  const notification = isDigest
    ? await digestOf(broker, subscription, due)
    : await toNotification(broker, subscription, channel, first);
  const sent: Sent =
    notification === null ? { kind: "delivered" } : await send(broker, owner, channel, notification);
  switch (sent.kind) {
    case "wait":
      await settle(0, now + sent.ms, state);
      return false;
    case "delivered": {
      const next = notification === null ? state : { delivered_at: now };
      if (notification !== null)
        broker.metrics.notifications.inc({ channel: channel.kind, outcome: "delivered" });
      for (const one of notification === null ? [] : notices.slice(0, count))
        await note(broker, one, owner, channel.kind, now);
      // It stays claimed for the rest.
      return (await settle(count, held.claim, next)) > 0;
    }
    case "failed": {
      const since = state.since ?? now;
      const paused = sent.gone || now - since > FOR_A_DAY_MS;
      const { delivered_at } = state;
      const next = { since, problem: sent.problem, ...(delivered_at !== undefined && { delivered_at }) };
      broker.metrics.notifications.inc({ channel: channel.kind, outcome: paused ? "given_up" : "failed" });
      broker.log.warn(
        { subscription_id: id, channel: channel.kind, problem: sent.problem },
        paused ? "a channel of a subscription is paused" : "a notification failed; it is retried",
      );
      await settle(
        0,
        paused ? null : now + broker.callbackRetryMs(now - since),
        { ...next, ...(paused && { paused }) },
        paused,
      );
      if (paused) await broker.subscriptions.changed();
      return false;
    }
  }
}

/** Of those that still matter; null: none does. */
async function digestOf(broker: Needs, subscription: StoredSubscription, due: readonly StoredNotice[]) {
  const left: StoredNotice[] = [];
  for (let at = 0; at < due.length; at += AT_ONCE) {
    const some = due.slice(at, at + AT_ONCE);
    const matter = await Promise.all(some.map((notice) => stillMatters(broker, notice)));
    left.push(...some.filter((_, n) => matter[n]));
  }
  return left.length === 0 ? null : toDigest(broker, subscription, left);
}

/** So that a question that expires says who knew of it. */
async function note(
  { redis, retentionMs }: Needs,
  { kind, delegation, question }: StoredNotice,
  person: string,
  channel: ChannelKind,
  now: number,
): Promise<void> {
  if (kind !== "question" && kind !== "question_expiring") return;
  if (delegation === undefined || question === undefined) return;
  const told = { person, channel, at: toInstant(now) };
  await noteTold(redis, { delegation, question }, told, retentionMs + FOR_A_DAY_MS);
}
