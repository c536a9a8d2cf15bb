/** docker-compose.cluster.yml, without Docker: its parts fit together, and Redis and the broker accept their settings. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readConfig } from "../../src/config.ts";
import { checkTarget } from "../../src/redis/check.ts";
import { clusterOf } from "../../src/redis/target.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { redisConfigOf } from "./compose.ts";
import { ROOT } from "./registry.ts";

const addressSchema = z.strictObject({ cluster: z.strictObject({ ipv4_address: z.ipv4() }) });
const redisSchema = z.looseObject({
  image: z.literal("redis:7-alpine"),
  command: z.array(z.string()),
  volumes: z.array(z.string()).length(1),
  networks: addressSchema,
  restart: z.literal("unless-stopped"),
});
const errandSchema = z.looseObject({
  build: z.literal("."),
  depends_on: z.strictObject({
    create: z.strictObject({ condition: z.literal("service_completed_successfully") }),
  }),
  environment: z.record(z.string(), z.string()),
  ports: z.array(z.string().startsWith("127.0.0.1:")).length(1),
  read_only: z.literal(true),
  networks: z.tuple([z.literal("cluster")]),
  volumes: z.array(z.string()).length(1),
});
const REDIS = ["redis-1", "redis-2", "redis-3", "redis-4", "redis-5", "redis-6"] as const;
const composeSchema = z.looseObject({
  services: z.strictObject({
    ...Object.fromEntries(REDIS.map((name) => [name, redisSchema])),
    create: z.looseObject({
      image: z.literal("redis:7-alpine"),
      command: z.tuple([z.literal("sh"), z.literal("-c"), z.string()]),
      depends_on: z.record(z.enum(REDIS), z.strictObject({ condition: z.literal("service_healthy") })),
      restart: z.literal("no"),
    }),
    "errand-1": errandSchema,
    "errand-2": errandSchema,
  }),
  networks: z.strictObject({
    cluster: z.strictObject({
      ipam: z.strictObject({ config: z.tuple([z.strictObject({ subnet: z.string() })]) }),
    }),
  }),
  volumes: z.record(z.string(), z.null()),
});

function compose() {
  const document: unknown = parse(readFileSync(join(ROOT, "docker-compose.cluster.yml"), "utf8"), {
    merge: true,
  });
  const text = JSON.stringify(document)
    .replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1")
    .replaceAll(/\$\{\w+:\?[^}]*\}/g, "sixteen-characters");
  const { services, ...rest } = composeSchema.parse(JSON.parse(text));
  const nodes = REDIS.map((name) => redisSchema.parse(Reflect.get(services, name)));
  return { ...rest, nodes, services, gateways: [services["errand-1"], services["errand-2"]] };
}

test("the nodes have addresses and volumes of their own, and the gateways and the command that joins them name them", () => {
  const { nodes, gateways, services, networks, volumes } = compose();
  const addresses = nodes.map(({ networks: { cluster } }) => cluster.ipv4_address);
  expect(new Set(addresses).size).toBe(6);
  const prefix = networks.cluster.ipam.config[0].subnet.replace(/0\/24$/, "");
  expect(addresses.every((address) => address.startsWith(prefix))).toBe(true);
  const mounted = [...nodes, ...gateways].map(({ volumes: [volume = ""] }) => volume.replace(/:\/data$/, ""));
  expect(mounted.sort()).toEqual(Object.keys(volumes).sort());
  const script = services.create.command[2];
  expect(script).toContain(
    `--cluster-replicas 1 ${addresses.map((address) => `${address}:6379`).join(" ")}\n`,
  );
  expect(Object.keys(services.create.depends_on).sort()).toEqual([...REDIS]);
  for (const { environment } of gateways) {
    const config = readConfig(environment);
    const cluster = clusterOf({ url: config.ERRAND_REDIS_URL ?? "" });
    expect(cluster?.nodes.map(({ host }) => host)).toEqual(addresses.slice(0, 3));
    expect([config.ERRAND_SHARDS, config.ERRAND_REDIS_WAIT_REPLICAS]).toEqual([16, 1]);
  }
  expect(new Set(gateways.map(({ ports: [port] }) => port)).size).toBe(2);
});

test("the command that joins the nodes is a shell script", async () => {
  const script = compose().services.create.command[2];
  await expect(promisify(execFile)("sh", ["-n", "-c", script])).resolves.toBeDefined();
});

test("Redis accepts the nodes' settings, and the broker has nothing to say against them", async () => {
  const [node] = compose().nodes;
  const directory = await mkdtemp(join(tmpdir(), "errand-compose-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const settings = Object.entries(redisConfigOf(node?.command ?? []));
  const cluster = await startRedisCluster({
    binary: await testRedisBinary(),
    directory,
    more: settings.map(([name, value]) => `${name} ${value === "" ? '""' : value}`),
  });
  onTestFinished(() => cluster.stop());
  const { refused, warnings } = await checkTarget({ url: cluster.url });
  expect([refused, warnings]).toEqual([[], []]);
});
