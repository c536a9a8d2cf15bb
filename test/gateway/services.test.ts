/** The start and stop of the parts of a gateway. */
import { createServer } from "node:net";
import { Redis } from "ioredis";
import { expect, inject, onTestFinished, test } from "vitest";
import { startGateway } from "../../src/gateway/gateway.ts";
import { type Service, Services } from "../../src/gateway/services.ts";
import { keys } from "../../src/redis/keys.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { freshDb, OPERATOR } from "../support/broker.ts";
import { until } from "../support/until.ts";

function recorded(broken: { readonly start?: string; readonly stop?: string }) {
  const calls: string[] = [];
  const service = (name: string): Service => ({
    name,
    start: async () => {
      calls.push(`start ${name}`);
      if (broken.start === name) throw new Error("cannot start");
    },
    stop: async () => {
      calls.push(`stop ${name}`);
      if (broken.stop === name) throw new Error("cannot stop");
    },
  });
  const failed: string[] = [];
  const services = new Services(["a", "b", "c"].map(service), (_, name) => failed.push(name));
  return { services, calls, failed };
}

test("services start in order and stop once, in reverse", async () => {
  const { services, calls } = recorded({});
  await services.start();
  await Promise.all([services.stop(), services.stop()]);
  expect(calls).toEqual(["start a", "start b", "start c", "stop c", "stop b", "stop a"]);
});

test("when one fails to start, it and those before it are stopped in reverse", async () => {
  const { services, calls } = recorded({ start: "b" });
  await expect(services.start()).rejects.toThrow("cannot start");
  expect(calls).toEqual(["start a", "start b", "stop b", "stop a"]);
});

test("one that fails to stop is reported, and the others stop", async () => {
  const { services, calls, failed } = recorded({ stop: "b" });
  await services.start();
  await services.stop();
  expect(calls.slice(3)).toEqual(["stop c", "stop b", "stop a"]);
  expect(failed).toEqual(["b"]);
});

test("a gateway that cannot listen leaves nothing running", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void taken.close());
  const address = taken.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const socket = inject("redisSocket");
  const db = await freshDb();
  const redis = new Redis(socket, { db });
  onTestFinished(() => redis.disconnect());
  const connections = async () => {
    const list = String(await redis.client("LIST"));
    return list.split("\n").filter((line) => line.includes(` db=${db} `)).length;
  };
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  // This test's own connection; its timers exist before.
  expect(await connections()).toBe(1);
  const before = timers();
  await expect(
    startGateway({
      redis: { socket, db },
      host: "127.0.0.1",
      port,
      operatorToken: OPERATOR,
      shards: 1,
      retentionMs: 3_600_000,
      maxBodyBytes: 1_048_576,
      allowedOrigins: [],
      log: createLog("silent", () => {}),
    }),
  ).rejects.toThrow("EADDRINUSE");
  await until(async () => (await connections()) === 1, { what: "its connections to close" });
  // It is no longer announced to other gateways.
  expect(await redis.zrange(keys.gateways, "0", "-1")).toEqual([]);
  await until(() => timers() <= before, { what: "its timers to end" });
});
