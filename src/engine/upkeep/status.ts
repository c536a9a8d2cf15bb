/** The status of the broker. Limit: reads it from Redis each time, so it is for people, not for scrapes. */
import { serverStatus } from "../../redis/check.ts";
import { timeOf } from "../../redis/time.ts";
import type { Status } from "../../schema/status.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";

export async function status(broker: Broker, principal: Principal): Promise<Omit<Status, "version">> {
  const { redis, redisSource, clock, publicUrl } = broker;
  const maySee = principal.kind === "operator" || principal.kind === "viewer";
  const settings = maySee ? { source: redisSource, ...(await serverStatus(redis)) } : null;
  // Last, so that it is as recent as possible.
  const ms = (await timeOf(redis)) + clock.offset_ms;
  return { url: publicUrl(), now: toInstant(ms), principal: principal.text, redis: settings };
}
