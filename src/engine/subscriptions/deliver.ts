/**
 * Sends what waits in a lane, in order, until nothing is due. At least once: a notification leaves its lane after its
 * receiver accepted it, and a repeat carries the same id. Limit: a job of the outbound queue starts it; Redis has the time at
 * which the lane is due, so a lost job is replaced (notifier.ts). A channel that fails for a day, or is gone, is paused.
 */
import { LIMITS } from "../../schema/limits.ts";
import type { ChannelKind } from "../../schema/notice.ts";
import type { Channel } from "../../schema/subscription.ts";
import { toInstant } from "../../schema/values.ts";
import { warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { FOR_A_DAY_MS } from "../outbound/http-call.ts";
import { type Sends, send } from "./channels/send.ts";
import type { Composed } from "./composed.ts";
import { stillMatters, toDigest, toNotification } from "./notification.ts";
import { putOff } from "./put-off.ts";
import { untilLoud } from "./quiet.ts";
import type { LaneAt, LaneChange, LaneClaim } from "./store.ts";
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
    | "bulk"
    | "clock"
    | "presence"
    | "redis"
    | "retentionMs"
    | "shards"
    | "subscriptions"
    | "tokens"
  >;

/** Longer than one call may take: a lane whose gateway died is taken again after this. */
const CLAIM_MS = 12_000;
/** How long a job may run before other jobs run. */
const RUN_MS = 10_000;
/** All that can wait, so that a digest counts all. */
const MOST = LIMITS.notices_waiting.value;
const AT_ONCE = 50;
/** How often a receiver refuses a notification before it is dropped. */
const MOST_REFUSALS = 3;
/** The wait while too many calls run. */
const SLOT_MS = 500;

export async function deliverNotices(broker: Needs, taken: LaneClaim, stopping: AbortSignal): Promise<null> {
  const endsAt = performance.now() + RUN_MS;
  let held = taken;
  try {
    for (;;) {
      const found = await broker.subscriptions.store.lane(held, MOST, CLAIM_MS);
      if (!found) return null;
      held = { ...taken, claim: found.claim };
      if (!(await step(broker, found, held))) return null;
      if (stopping.aborted || performance.now() >= endsAt) break;
    }
    // The rest is due at once, for another job.
    await broker.subscriptions.store.release(held);
  } catch (error) {
    await putOff(broker, held, error);
  }
  return null;
}

/** Sends what is first. Returns whether more may be due. */
async function step(broker: Needs, found: LaneAt, held: LaneClaim): Promise<boolean> {
  const { subscription, notices, now } = found;
  const { settings, channels, owner, token } = subscription;
  const n = channelOf(held.lane);
  const channel = settings.deliver[n];
  const [first] = notices;
  if (!first) return false;
  const state = channels[n] ?? {};
  const settle = (change: Omit<LaneChange, "epoch">) =>
    broker.subscriptions.store.settle(held, first, { ...change, epoch: subscription.epoch });
  const wait = async (ms: number) => {
    await settle({ done: 0, due: now + ms, state });
    return false;
  };
  /** The lane stays claimed for the rest. */
  const goOn = async (done: number, next: ChannelState, drops = 0) =>
    (await settle({ done, due: held.claim, state: next, drops })) > 0;
  // The channel was removed meanwhile.
  if (!channel) return goOn(notices.length, state);
  if (state.paused) {
    await settle({ done: 0, due: null, state });
    return false;
  }
  if (!(await broker.tokens.isHolder(token))) {
    const problem = `The token with which ${owner} created the subscription was revoked or replaced, or has expired.`;
    await settle({
      done: 0,
      due: null,
      state: { ...state, since: now, problem, paused: true },
      changes: true,
    });
    await broker.subscriptions.changed();
    return false;
  }
  if (!first.isReadable) return goOn(1, state, 1);
  const after_ms = ignoresQuiet(held.lane) ? 0 : channel.after_seconds * 1000;
  const early = Math.max(
    first.at + after_ms - now,
    ignoresQuiet(held.lane) ? 0 : untilLoud(settings.quiet, now),
  );
  if (early > 0) return wait(early);
  const next = await nextOf(broker, subscription, channel, firstDue(notices, now - after_ms));
  if (next.message === null) return goOn(next.count, state);
  const slot = broker.subscriptions.slots.acquire(owner);
  if (slot === null) return wait(SLOT_MS);
  const sent = await send(broker, owner, channel, next.message, now).finally(slot);
  if (sent.kind === "wait") return wait(sent.ms);
  if (sent.kind === "delivered") {
    broker.metrics.notifications.inc({ channel: channel.kind, outcome: "delivered" });
    for (const one of notices.slice(0, next.count)) await note(broker, one, owner, channel.kind, now);
    return goOn(next.count, { delivered_at: now });
  }
  // Only what its receiver does counts towards a pause.
  const since = (state.ours ? undefined : state.since) ?? now;
  const { delivered_at } = state;
  const refusals = sent.refused ? (state.refusals ?? 0) + 1 : 0;
  const failed = {
    since,
    problem: sent.problem,
    refusals,
    ...(delivered_at !== undefined && { delivered_at }),
  };
  // The receiver accepts other notifications, but never this one.
  if (refusals >= MOST_REFUSALS) return goOn(next.count, { ...failed, refusals: 0 }, next.count);
  const paused = sent.gone || now - since > FOR_A_DAY_MS;
  broker.metrics.notifications.inc({ channel: channel.kind, outcome: paused ? "given_up" : "failed" });
  broker.log.warn(
    { subscription_id: subscription.id, channel: channel.kind, problem: sent.problem },
    paused ? "a channel of a subscription is paused" : "a notification failed; it is retried",
  );
  await settle({
    done: 0,
    due: paused ? null : now + broker.callbackRetryMs(now - since),
    state: { ...failed, ...(paused && { paused }) },
    changes: paused,
  });
  if (paused) await broker.subscriptions.changed();
  return false;
}

/** The first ones, up to one that happened later than `until`: events of several shards are not in order of time. */
function firstDue(notices: readonly StoredNotice[], until: number): readonly StoredNotice[] {
  const end = notices.findIndex(({ at }) => at > until);
  return end < 0 ? notices : notices.slice(0, end);
}

/** What is sent next, and for how many notifications; null: these no longer matter. */
async function nextOf(
  broker: Needs,
  subscription: StoredSubscription,
  channel: Channel,
  due: readonly StoredNotice[],
): Promise<{ readonly message: Composed | null; readonly count: number }> {
  const [first] = due;
  const { digest_above } = subscription.settings;
  const news = withoutOldReminders(due);
  const old = news[0] ? due.indexOf(news[0]) : 0;
  if (old > 0) return { message: null, count: old };
  if (first && news.length > digest_above) {
    const left = await mattering(broker, subscription, news);
    if (left.length > digest_above || left.length === 0)
      return { message: left.length === 0 ? null : toDigest(broker, subscription, left), count: due.length };
    const [live] = left;
    const before = live ? due.indexOf(live) : 0;
    if (before > 0) return { message: null, count: before };
  }
  return { message: first ? await toNotification(broker, subscription, channel, first) : null, count: 1 };
}

/** Of the reminders of one question, only the last is sent. */
function withoutOldReminders(due: readonly StoredNotice[]): readonly StoredNotice[] {
  const last = new Map(due.flatMap((one) => (one.reminder === undefined ? [] : [[one.question, one]])));
  return due.filter((one) => one.reminder === undefined || last.get(one.question) === one);
}

async function mattering(
  broker: Needs,
  subscription: StoredSubscription,
  due: readonly StoredNotice[],
): Promise<StoredNotice[]> {
  const left: StoredNotice[] = [];
  for (let at = 0; at < due.length; at += AT_ONCE) {
    const some = due.slice(at, at + AT_ONCE);
    const matter = await Promise.all(some.map((notice) => stillMatters(broker, subscription, notice)));
    left.push(...some.filter((_, n) => matter[n]));
  }
  return left;
}

/** Notes who was notified, so that the notification of an expired question can say so. */
async function note(
  broker: Needs,
  { kind, delegation, question, reminder }: StoredNotice,
  person: string,
  channel: ChannelKind,
  now: number,
): Promise<void> {
  if (kind !== "question" && kind !== "question_expiring") return;
  if (delegation === undefined || question === undefined) return;
  const told = { person, channel, at: toInstant(now) };
  // It was delivered: a note that fails must not send it again.
  await noteTold(broker.redis, { delegation, question }, told, {
    forMs: broker.retentionMs + FOR_A_DAY_MS,
    isReminder: reminder !== undefined,
  }).catch((error: unknown) => warn(broker, error, "who was notified of a question is not noted"));
}
