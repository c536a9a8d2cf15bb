/**
 * The messages between a supervisor and its gateways, as schemas: after an upgrade, a rolling restart starts gateways
 * of a newer version under an older supervisor. A message that does not fit is ignored.
 */
import * as z from "zod";
import type { RedisTarget } from "../redis/connect.ts";
import type { MetricValues } from "../telemetry/summed-metrics.ts";

/** The metrics of one gateway, as prom-client exports them. */
export const snapshotSchema = z.array(
  z.custom<MetricValues>((one) => typeof one === "object" && one !== null && "name" in one && "type" in one),
);

/** One gateway, as its siblings know it. */
export const siblingSchema = z.object({
  /** Counted from 1. The gateway that replaces it gets the same number. */
  number: z.number(),
  pid: z.number(),
  state: z.enum(["starting", "ready", "stopping"]),
  started_at: z.number(),
  /** How often a gateway with this number ended unexpectedly. */
  restarts: z.number(),
  /** Its random name among all gateways; null until it is ready. */
  gateway: z.string().nullable(),
});
export type Sibling = z.infer<typeof siblingSchema>;

/** How much of a quota a principal (`owner`) has open. */
const quotaCountSchema = z.object({ quota: z.string(), owner: z.string(), count: z.number() });
export type QuotaCount = z.infer<typeof quotaCountSchema>;

export const setupSchema = z.object({
  type: z.literal("setup"),
  number: z.number(),
  /** How many gateways there are. */
  count: z.number(),
  port: z.number(),
  redis: z.custom<RedisTarget>((target) => typeof target === "object" && target !== null),
  operator_token: z.string(),
});
export type Setup = z.infer<typeof setupSchema>;

/** From the supervisor to a gateway. */
export const orderSchema = z.discriminatedUnion("type", [
  setupSchema,
  z.object({ type: z.literal("siblings"), siblings: z.array(siblingSchema) }),
  /** Changed counts, each the sum over the other gateways; 0 deletes the entry. */
  z.object({ type: z.literal("held_elsewhere"), held: z.array(quotaCountSchema) }),
  /** Asks for the gateway's metrics, which it sends as `measured`. */
  z.object({ type: z.literal("measure"), id: z.number() }),
  /** The answer to `sum`. */
  z.object({ type: z.literal("metrics_text"), id: z.number(), text: z.string() }),
  /** Asks for a link to sign in to the console, which it sends as `signed_in`. */
  z.object({ type: z.literal("sign_in"), id: z.number() }),
  /** Another gateway died before it withdrew its presence; the receiver withdraws it. */
  z.object({ type: z.literal("died"), gateway: z.string() }),
  /** `handover`: the other gateways go on serving, so this one refuses no request while it stops. */
  z.object({ type: z.literal("stop"), handover: z.boolean() }),
]);
export type Order = z.infer<typeof orderSchema>;

/** From a gateway to the supervisor. */
export const reportSchema = z.discriminatedUnion("type", [
  /** Asks for the setup. */
  z.object({ type: z.literal("hello") }),
  /** Sent at regular intervals while its event loop runs (child.ts). */
  z.object({ type: z.literal("alive") }),
  z.object({
    type: z.literal("ready"),
    port: z.number(),
    gateway: z.string(),
  }),
  /** Its counts that changed; 0 deletes the entry. */
  z.object({ type: z.literal("held"), held: z.array(quotaCountSchema) }),
  /** Asks for the metrics of all gateways, for a scrape. `of_broker`: metrics of the whole broker, which are not summed. */
  z.object({
    type: z.literal("sum"),
    id: z.number(),
    snapshot: snapshotSchema,
    of_broker: snapshotSchema,
  }),
  z.object({ type: z.literal("measured"), id: z.number(), snapshot: snapshotSchema }),
  z.object({ type: z.literal("signed_in"), id: z.number(), line: z.string().nullable() }),
  /** Its connection to Redis is lost: the private Redis, which the supervisor started, may have ended. */
  z.object({ type: z.literal("redis_lost") }),
  /** It got a SIGTERM of its own and asks for a successor. */
  z.object({ type: z.literal("replace_me") }),
  /** It stops. `busy`: how many of its connections are in use. */
  z.object({ type: z.literal("stopping"), busy: z.number() }),
  /** Its last metrics, just before it exits. */
  z.object({ type: z.literal("last"), snapshot: snapshotSchema }),
]);
export type Report = z.infer<typeof reportSchema>;
