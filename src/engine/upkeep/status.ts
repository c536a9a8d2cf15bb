/** The status of the broker. Limit: reads it from Redis each time, so it is for people, not for scrapes. */
import type { Sibling } from "../../gateways/messages.ts";
import { serverStatus } from "../../redis/check.ts";
import { readDiskSpace } from "../../redis/disk-space.ts";
import { engineTime } from "../../redis/time.ts";
import type { FilesStatus, GatewayStatus, Status } from "../../schema/status.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { budgetsShown } from "../delegations/period-budgets.ts";
import { storedBytes } from "../files/own-files.ts";

export async function status(
  broker: Pick<
    Broker,
    | "clock"
    | "dataDir"
    | "files"
    | "id"
    | "linkBase"
    | "mailer"
    | "publicUrl"
    | "redis"
    | "redisSource"
    | "shards"
    | "siblings"
    | "startedAt"
  >,
  principal: Principal,
): Promise<Omit<Status, "version">> {
  const budgets = await budgetsShown(broker, principal);
  const { id, redis, redisSource, dataDir, clock, publicUrl, startedAt, siblings } = broker;
  const maySee = principal.kind === "operator" || principal.kind === "viewer";
  const settings = maySee ? { source: redisSource, ...(await serverStatus(redis)) } : null;
  const disk = settings === null || dataDir === null ? null : await readDiskSpace(dataDir);
  // Last, so that it is as recent as possible.
  const askedAt = performance.now();
  const ms = await engineTime(redis, clock);
  const latency_ms = Math.round((performance.now() - askedAt) * 1000) / 1000;
  return {
    broker_id: id,
    url: publicUrl(),
    started_at: toInstant(startedAt),
    now: toInstant(ms),
    principal: principal.text,
    notifications: { links: broker.linkBase !== null, mail: broker.mailer.isSet },
    ...(budgets && { budgets }),
    redis: settings && {
      ...settings,
      latency_ms,
      ...(disk && { disk_free_bytes: disk.free_bytes, disk_total_bytes: disk.total_bytes }),
    },
    ...(maySee && { files: await filesStatus(broker) }),
    ...(maySee && siblings && { gateways: siblings.all.map(toGatewayStatus) }),
  };
}

const toGatewayStatus = ({ number, pid, state, started_at, restarts }: Sibling): GatewayStatus => ({
  ...{ number, pid, state, restarts },
  started_at: toInstant(started_at),
});

async function filesStatus({ files, redis }: Pick<Broker, "files" | "redis">): Promise<FilesStatus | null> {
  if (files === null) return null;
  const { store, maxBytes: max_bytes, principalBytes: principal_max_bytes } = files;
  const free_bytes = await store.freeBytes();
  return { place: store.place, bytes: await storedBytes(redis), max_bytes, principal_max_bytes, free_bytes };
}
