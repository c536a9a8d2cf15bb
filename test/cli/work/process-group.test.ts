import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kill, platform } from "node:process";
import { expect, onTestFinished, test } from "vitest";
import { endGroup, hasLiving } from "../../../src/cli/work/process-group.ts";
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

test.skipIf(platform === "win32")("the processes of the machine are looked at ever more rarely", async () => {
  const child = spawn("sh", ["-c", "trap '' TERM; echo; while :; do sleep 600; done"], { detached: true });
  onTestFinished(() => void kill(-Number(child.pid), "SIGKILL"));
  await once(child.stdout, "data");
  const looks = [performance.now()];
  await endGroup(child, HOURS_MS, async () => looks.push(performance.now()) < 3);
  const [first = 0, second = 0] = looks.slice(1).map((at, n) => at - (looks[n] ?? at));
  expect(looks).toHaveLength(3);
  expect([first >= 100, second >= 200]).toEqual([true, true]);
});

/** A folder like /proc, with a process 7 of group 7 whose first thread has ended. */
async function procWith(threads: Readonly<Record<string, string>>): Promise<string> {
  const proc = await mkdtemp(join(tmpdir(), "proc-"));
  onTestFinished(() => rm(proc, { recursive: true }));
  const stat = (pid: string, state: string, group: number) => `${pid} (a ) b) ${state} 1 ${group} 7 0`;
  for (const [thread, state] of Object.entries(threads)) {
    await mkdir(join(proc, "7/task", thread), { recursive: true });
    await writeFile(join(proc, "7/task", thread, "stat"), stat(thread, state, 7));
  }
  await writeFile(join(proc, "7/stat"), stat("7", "Z", 7));
  await mkdir(join(proc, "8"));
  await writeFile(join(proc, "8/stat"), stat("8", "S", 8));
  return proc;
}

test.runIf(platform === "linux")("a process lives while one of its threads does", async () => {
  expect(await hasLiving(7, await procWith({ 7: "Z", 9: "S" }))).toBe(true);
  expect(await hasLiving(7, await procWith({ 7: "Z", 9: "X" }))).toBe(false);
});
