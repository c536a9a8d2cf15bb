/** A Redis that has ended: the log and the CLI say which one, and why it cannot be reached, but not its password. */
import { expect, test } from "vitest";
import { run } from "../cli/fake-host.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { startServer } from "../support/redis-pair.ts";
import { until } from "../support/until.ts";

test("the log, errand list and errand doctor name the address and the reason", async () => {
  const { redis, port } = await startServer();
  await redis.config("SET", "requirepass", "not-to-be-shown");
  const url = `redis://:not-to-be-shown@127.0.0.1:${port}`;
  const broker = await startBroker();
  const { url: gateway } = await broker.another({ redis: { url } });
  await client(gateway).agent("scout");
  broker.log.length = 0;
  // Its answer never comes.
  void redis.shutdown("NOSAVE").catch(() => undefined);

  const away = () => broker.log.filter((line) => line.includes("Redis is away"));
  await until(() => away().length > 0);
  const reason = `connect ECONNREFUSED 127.0.0.1:${port}`;
  expect(JSON.parse(away()[0] ?? "")).toMatchObject({ redis: `127.0.0.1:${port}`, err: reason });

  const env = { url: gateway, token: OPERATOR };
  const list = await run(["list"], { env });
  expect([list.code, list.stdout]).toEqual([75, ""]);
  expect(list.stderr).toContain("retrying for up to 5 s.\n");
  expect(list.stderr).toContain(reason);
  const doctor = await run(["doctor"], { env });
  expect(doctor.code).toBe(75);
  expect(doctor.stdout).toMatch(new RegExp(`^fail +redis .*${reason.replaceAll(".", "\\.")}`, "m"));
  expect(away()).toHaveLength(1);
  expect(list.stderr + doctor.stdout + doctor.stderr + broker.log.join("")).not.toContain("not-to-be-shown");
}, 120_000);
