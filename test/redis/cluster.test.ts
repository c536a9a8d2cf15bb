/** The driver on a Cluster that is gone, or that this process leaves. What a live one does is tested in test/cluster. */
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/redis/connect.ts";
import { isUnavailable } from "../../src/redis/errors.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { until } from "../support/until.ts";

const reasonOf = (error: unknown) => error;

test("a command fails soon on a Cluster that does not answer, and at once after the end of the connection", async () => {
  const cluster = await startRedisCluster({ binary: await testRedisBinary(), withReplicas: false });
  onTestFinished(() => cluster.stop());
  const redis = connect({ url: cluster.url }, "commands", undefined, 400);
  onTestFinished(() => redis.disconnect());
  redis.on("error", () => {});
  await until(async () => (await redis.set("x", "1")) === "OK");
  for (const node of cluster.nodes) node.signal("SIGSTOP");
  expect(isUnavailable(await redis.get("x").catch(reasonOf))).toBe(true);
  // No connection is open now.
  expect(isUnavailable(await redis.get("x").catch(reasonOf))).toBe(true);
  for (const node of cluster.nodes) node.signal("SIGCONT");
  await until(async () => (await redis.get("x")) === "1");

  let closed = 0;
  redis.on("close", () => {
    closed += 1;
  });
  redis.disconnect();
  expect(isUnavailable(await redis.get("x").catch(reasonOf))).toBe(true);
  // The driver closes once for each of its nodes.
  await until(() => closed > 1 && redis.status === "close");
  expect(isUnavailable(await redis.get("x").catch(reasonOf))).toBe(true);
});
