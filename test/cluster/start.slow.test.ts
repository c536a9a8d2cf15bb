/** `npm run demo -- cluster`, as a person starts and stops it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { client } from "../support/broker.ts";
import { until } from "../support/until.ts";

const START = fileURLToPath(new URL("./start.ts", import.meta.url));
const infoSchema = z.object({
  gateways: z.array(z.url()).length(2),
  redis: z.string(),
  token: z.string(),
  masters: z.array(z.object({ address: z.string(), pid: z.int() })).length(3),
  logs: z.string(),
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test("starts a Cluster and two gateways that share it, and leaves nothing behind", async () => {
  const child = spawn(process.execPath, ["--import", "tsx", START, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk;
  });
  const exit = once(child, "exit");
  await until(() => said.includes("\n") || child.exitCode !== null, { what: "the start" });
  const info = infoSchema.parse(JSON.parse(said));
  const [first, second] = info.gateways.map((url) => client(url, info.token));
  expect((await first?.agent("scout"))?.status).toBe(201);
  const sent = await first?.delegate("scout");
  const { leases } = (await second?.lease("scout"))?.body ?? {};
  expect(leases[0].delegation.id).toBe(sent?.body.id);
  expect((await second?.reply(leases[0].lease_id))?.status).toBe(200);
  expect((await first?.call("GET", "/v1/status"))?.body.redis).toMatchObject({
    masters: 3,
    appendfsync: "always",
  });
  child.kill("SIGINT");
  expect(await exit).toEqual([0, null]);
  await until(() => info.masters.every(({ pid }) => !isAlive(pid)));
  expect(existsSync(info.logs)).toBe(false);
});
