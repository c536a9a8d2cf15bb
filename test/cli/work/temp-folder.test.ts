/** The temporary folders of `errand work`: what a killed worker left behind is removed, and nothing else. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { geteuid, getuid, pid, seteuid } from "node:process";
import { expect, onTestFinished, test } from "vitest";
import { makeFolder, noteGroup, removeFolder, removeLeftBehind } from "../../../src/cli/work/temp-folder.ts";
import { AGENT, completedWith, leaseLike, stubBroker } from "../../client/stub-broker.ts";
import { freshDir } from "../../support/program.ts";
import { run } from "../fake-host.ts";

/** A directory for temporary files, until the test ends. */
function temporary(): string {
  const { TMPDIR: before } = process.env;
  const dir = freshDir();
  process.env.TMPDIR = dir;
  onTestFinished(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  return dir;
}

async function deadProcess(): Promise<number> {
  const child = spawn("true");
  await once(child, "exit");
  return child.pid ?? 0;
}

function liveProcess(): number {
  const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child.pid ?? 0;
}

test("of dead workers it removes the folders, unless their command still runs", async () => {
  const dir = temporary();
  const [dead, alive] = [await deadProcess(), liveProcess()];
  /** As a folder that this worker has made. */
  const madeBy = async (worker: number, change: (name: string) => string = (name) => name) => {
    const made = await makeFolder();
    const path = join(dir, change(basename(made).replace(`-${pid}-`, `-${worker}-`)));
    renameSync(made, path);
    writeFileSync(join(path, "answers.json"), "{}");
    return path;
  };
  const left = await madeBy(dead);
  // The id of a worker in a container is often the same.
  const sameId = await madeBy(pid, (name) => `${name.slice(0, -6)}000000`);
  const ended = await madeBy(dead);
  noteGroup(ended, dead);
  const running = await madeBy(dead);
  noteGroup(running, alive);
  const kept = [
    running,
    await madeBy(alive),
    await makeFolder(),
    // In another PID namespace.
    await madeBy(dead, (name) => name.replace(/^errand-work-\w{8}/, "errand-work-00000000")),
    await madeBy(dead, () => "errand-work-Ab12Cd"),
  ];
  const link = join(dir, basename(left).replace(/\w{6}$/, "000000"));
  symlinkSync("/etc", link);
  await removeLeftBehind();
  expect([left, sameId, ended].filter(existsSync)).toEqual([]);
  expect(readdirSync(dir).sort()).toEqual([...kept, link].map((path) => basename(path)).sort());
});

test("a worker begins with it, and notes the group of its command in the folder", async () => {
  const dir = temporary();
  const made = await makeFolder();
  renameSync(made, made.replace(`-${pid}-`, `-${await deadProcess()}-`));
  let isGiven = false;
  const stub = await stubBroker(({ path, body }, answer) => {
    if (path.endsWith("/scout")) answer.json(AGENT);
    else if (path.endsWith("/reply")) answer.json({ outcome: "matched", delegation: completedWith("") });
    else if (path.endsWith("/heartbeat")) {
      // The one that waits for messages gets no answer.
      const renewed = { expires_at: "2026-01-01T00:02:00.000Z", messages: [], state: "working" };
      if (body.wait_seconds === undefined) answer.json(renewed);
    } else if (!isGiven) answer.json({ leases: [leaseLike(60)] });
    isGiven ||= path.endsWith("/leases");
  });
  const script =
    'cd "$ERRAND_ARTIFACTS_DIR/.."; until [ -s group ]; do sleep 0.05; done; echo $$ $(cat group); ls ..';
  const { code } = await run(["work", "--agent", "scout", "--once", "--", "sh", "-c", script], {
    env: { url: stub.url, token: "t" },
  });
  const [first = "", ...folders] = String(stub.to("/reply")[0]?.body.text).split("\n");
  const [own, group] = first.split(" ");
  expect([code, group, folders]).toEqual([0, own, [expect.stringContaining(`-${pid}-`)]]);
  expect(readdirSync(dir)).toEqual([]);
});

test("a folder that the command made read-only is removed, too", async () => {
  const dir = temporary();
  const before = geteuid?.();
  // Root may write everywhere.
  if (getuid?.() === 0) {
    chownSync(dir, 65_534, 65_534);
    seteuid?.(65_534);
  }
  try {
    const folder = await makeFolder();
    const module = join(folder, "artifacts", "module");
    mkdirSync(module, { recursive: true });
    writeFileSync(join(module, "file"), "");
    for (const path of [module, join(folder, "artifacts")]) chmodSync(path, 0o555);
    await removeFolder(folder);
    expect(readdirSync(dir)).toEqual([]);
  } finally {
    if (before !== undefined) seteuid?.(before);
  }
});
