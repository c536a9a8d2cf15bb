import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { kill, platform } from "node:process";
import { expect, onTestFinished, test } from "vitest";
import { endGroup } from "../../../src/cli/work/process-group.ts";
import { until } from "../../support/until.ts";

const HOURS_MS = 10_000_000;

/** Its group keeps a child whose parent has left the group and never waits. */
const LEAVES_ZOMBIE = "(sh -c 'sleep 0 & echo $! $$; exec setsid sleep 600' &)";

test.runIf(platform === "linux")("a group ends when only processes are left that have ended", async () => {
  const child = spawn("sh", ["-c", LEAVES_ZOMBIE], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const [pids] = await once(child.stdout, "data");
  const [zombie = 0, parent = 0] = String(pids).split(" ").map(Number);
  onTestFinished(() => void kill(parent, "SIGKILL"));
  const fieldsOf = async (pid: number) =>
    (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ");
  await until(async () => (await fieldsOf(parent))?.[2] === String(parent));
  await until(async () => (await fieldsOf(zombie))?.[0] === "Z");
  expect((await fieldsOf(zombie))?.[2]).toBe(String(child.pid));

  await endGroup(child, HOURS_MS);
  expect((await fieldsOf(parent))?.[0]).toBe("S");
});

test("a group that ignores SIGTERM is waited for, and killed after the grace", async () => {
  const child = spawn("sh", ["-c", "trap '' TERM; echo; while :; do sleep 600; done"], { detached: true });
  await once(child.stdout, "data");
  await endGroup(child, 50);
  if (child.signalCode === null) await once(child, "exit");
  expect(child.signalCode).toBe("SIGKILL");
});
