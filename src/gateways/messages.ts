/**
 * The messages between a supervisor and its gateways, as schemas: after an upgrade, a rolling restart starts gateways
 * of a newer version under an older supervisor. A message that does not fit is ignored.
 */
import { z } from "zod";
import type { RedisTarget } from "../redis/connect.ts";
import type { MetricValues } from "../telemetry/summed-metrics.ts";

/** The metrics of one gateway, as prom-client exports them. */
export const snapshotSchema = z.array(
  z.custom<MetricValues>((one) => typeof one === "object" && one !== null && "name" in one && "type" in one),
);

/** An MCP session, as its gateway passes it on before it stops. */
export const passedSessionSchema = z.object({
  id: z.string(),
  principal: z.string(),
  /** The body of its `initialize` request. */
  handshake: z.unknown(),
  lastUsedAt: z.number(),
});
export type PassedSession = z.infer<typeof passedSessionSchema>;

/** One gateway, as its siblings know it. */
export const siblingSchema = z.object({
  /** From 1 on; its successor gets the same. */
  number: z.number(),
  pid: z.number(),
  state: z.enum(["starting", "ready", "stopping"]),
  started_at: z.number(),
  /** How often a gateway with this number ended unexpectedly. */
  restarts: z.number(),
  /** Its random name among all gateways; null until it is ready. */
  gateway: z.string().nullable(),
  /** Where it accepts requests that belong to its MCP sessions. */
  inner_port: z.number().nullable(),
  /** Names of earlier gateways whose MCP sessions it has. */
  took_over: z.array(z.string()),
});
export type Sibling = z.infer<typeof siblingSchema>;

const heldSchema = z.array(z.object({ quota: z.string(), owner: z.string(), count: z.number() }));
export type Held = z.infer<typeof heldSchema>;

export const setupSchema = z.object({
  type: z.literal("setup"),
  number: z.number(),
  /** How many gateways there are. */
  count: z.number(),
  port: z.number(),
  redis: z.custom<RedisTarget>((target) => typeof target === "object" && target !== null),
  operator_token: z.string(),
  /** Proves to a sibling that a request was passed on by one of them. */
  inner_secret: z.string(),
});
export type Setup = z.infer<typeof setupSchema>;

/** From the supervisor to a gateway. */
export const orderSchema = z.discriminatedUnion("type", [
  setupSchema,
  z.object({ type: z.literal("siblings"), siblings: z.array(siblingSchema) }),
  /** The counts of the other gateways, summed for each quota; 0 deletes an entry. */
  z.object({ type: z.literal("held_elsewhere"), held: heldSchema }),
  z.object({ type: z.literal("measure"), id: z.number() }),
  z.object({ type: z.literal("metrics_text"), id: z.number(), text: z.string() }),
  z.object({ type: z.literal("sign_in"), id: z.number() }),
  z.object({ type: z.literal("take_over"), sessions: z.array(passedSessionSchema) }),
  /** A gateway died without withdrawing its presence. */
  z.object({ type: z.literal("died"), gateway: z.string() }),
  /** `handover`: the other gateways go on, so nothing is refused. */
  z.object({ type: z.literal("stop"), handover: z.boolean() }),
]);
export type Order = z.infer<typeof orderSchema>;

/** From a gateway to the supervisor. */
export const reportSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("hello") }),
  /** Its event loop runs; sent regularly (sign-of-life.ts). */
  z.object({ type: z.literal("alive") }),
  z.object({
    type: z.literal("ready"),
    port: z.number(),
    gateway: z.string(),
    inner_port: z.number(),
  }),
  z.object({ type: z.literal("held"), held: heldSchema }),
  /** Asks for the sum of all metrics, for a scrape. `of_broker`: the metrics that are not summed. */
  z.object({
    type: z.literal("sum"),
    id: z.number(),
    snapshot: snapshotSchema,
    of_broker: snapshotSchema,
  }),
  z.object({ type: z.literal("measured"), id: z.number(), snapshot: snapshotSchema }),
  z.object({ type: z.literal("signed_in"), id: z.number(), line: z.string().nullable() }),
  z.object({ type: z.literal("pass_on"), sessions: z.array(passedSessionSchema) }),
  z.object({ type: z.literal("took_over"), gateways: z.array(z.string()) }),
  z.object({ type: z.literal("redis_lost") }),
  /** It got a SIGTERM of its own and asks for a successor. */
  z.object({ type: z.literal("replace_me") }),
  /** It stops; the number of its connections in use. */
  z.object({ type: z.literal("stopping"), busy: z.number() }),
  /** Its last metrics, just before it exits. */
  z.object({ type: z.literal("last"), snapshot: snapshotSchema }),
]);
export type Report = z.infer<typeof reportSchema>;
