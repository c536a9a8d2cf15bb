/**
 * Tests a subscription. Limit: a principal has ten tests, and one more each minute, counted in Redis for all gateways, because
 * a test sends to any address that the subscription names.
 */
import { keys } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import { randomId } from "../../redis/shards.ts";
import { TIME_LUA } from "../../redis/time.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { SubscriptionTest } from "../../schema/subscription.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { type Sends, send } from "./channels/send.ts";
import { testOf } from "./notification.ts";
import { findSubscription } from "./read.ts";

type Needs = Sends & Pick<Broker, "agents" | "clock" | "linkBase" | "redis" | "subscriptions">;

const MOST = LIMITS.subscription_tests.value;
const EVERY_MS = 60_000;

/**
 * KEYS: when all tests of a principal are free again, ms · ARGV: clock offset, how many there are, after how long one is free
 * again, ms · Returns how long to wait, ms, or 0: one is taken.
 */
const paceScript = new Script(`#!lua flags=allow-oom
${TIME_LUA}
local now = redis_ms() + ARGV[1]
local free_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local wait = free_at - now - (ARGV[2] - 1) * ARGV[3]
if wait > 0 then return wait end
local next = free_at + ARGV[3]
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', string.format('%.0f', next - now))
return 0`);

/** Sends one notification by each channel, at once and without a repeat. */
export async function testSubscription(
  broker: Needs,
  principal: Principal,
  id: string,
): Promise<SubscriptionTest> {
  const subscription = await findSubscription(broker, principal, id);
  await requirePace(broker, principal);
  const { deliver } = subscription.settings;
  const now = await broker.subscriptions.store.now();
  const notification = testOf(broker, subscription, now, randomId(8));
  const sent = await Promise.all(
    deliver.map((channel) => send(broker, subscription.owner, channel, notification, now)),
  );
  return {
    deliver: deliver.map(({ kind }, n) => {
      const one = sent[n];
      const problem = one?.kind === "failed" ? one.problem : "Too many calls run; try again in a minute.";
      return {
        kind,
        delivered: one?.kind === "delivered",
        problem: one?.kind === "delivered" ? null : problem,
      };
    }),
  };
}

async function requirePace({ redis, clock }: Needs, { text }: Principal): Promise<void> {
  const args = [clock.offset_ms, MOST, EVERY_MS];
  const wait = Number(await paceScript.run(redis, [keys.subscriptionTests(text)], args));
  if (wait === 0) return;
  throw new ErrandError(
    "rate_limited",
    `You have used your ${MOST} tests of subscriptions; each minute there is one more.`,
    {
      retry_after_seconds: Math.ceil(wait / 1000),
      details: { limit: "subscription_tests", maximum: MOST },
    },
  );
}
