/**
 * Puts off a lane when the broker fails to send, not the receiver to accept: memory is full, a shard is away, or the code has
 * an error. Nothing is dropped or paused; the channel says why, and the lane is due again within a minute. Limit: if Redis
 * does not answer at all, the lane is due once its claim is over.
 */
import { isOutOfMemory, isUnavailable } from "../../redis/errors.ts";
import { type Warns, warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import type { LaneClaim } from "./store.ts";
import { channelOf } from "./stored-subscription.ts";

type Needs = Warns & Pick<Broker, "callbackRetryMs" | "metrics" | "subscriptions">;

const LONGEST_MS = 60_000;
/** For how long the lane stays claimed meanwhile. */
const CLAIM_MS = 5_000;

export async function putOff(broker: Needs, held: LaneClaim, error: unknown): Promise<void> {
  warn(broker, error, "notifications of a subscription were not sent; they are tried again");
  const { store } = broker.subscriptions;
  const found = await store.lane(held, 1, CLAIM_MS);
  const [first] = found?.notices ?? [];
  if (!found || !first) return;
  const { subscription, now, claim } = found;
  const n = channelOf(held.lane);
  const state = subscription.channels[n] ?? {};
  const since = state.since ?? now;
  const channel = subscription.settings.deliver[n]?.kind;
  if (channel) broker.metrics.notifications.inc({ channel, outcome: "failed" });
  await store.settle({ ...held, claim }, first, {
    done: 0,
    due: now + Math.min(broker.callbackRetryMs(now - since), LONGEST_MS),
    state: { ...state, since, problem: problemOf(error), ours: true },
    epoch: subscription.epoch,
  });
}

function problemOf(error: unknown): string {
  if (isOutOfMemory(error)) return "The broker's memory is full; it sends again when some is free.";
  if (isUnavailable(error)) return "The broker's storage was away; it tries again.";
  return "The broker failed to send it, and tries again; its log says why.";
}
