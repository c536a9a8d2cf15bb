/** Shared by the steps of a task: runs programs, prints progress, and holds a lock that one task may have at a time. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** The failure of a program that has printed why. */
export class Failed extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** To stderr: stdout belongs to the task, for example to `npm pack --json`. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/**
 * Prints one line about a step. On a terminal, the line shows what `progress` returns while `work` runs, and at the end
 * the time that it took.
 */
export async function step(name, work, progress = () => "") {
  if (!process.stderr.isTTY) {
    say(`${name} ...`);
    return work();
  }
  const began = performance.now();
  const took = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  const show = (text) => process.stderr.write(`\r${name} ... ${text}\u001b[K`);
  const ticker = setInterval(() => show([progress(), took()].filter(Boolean).join(", ")), 200);
  show("");
  try {
    const result = await work();
    show(took());
    return result;
  } finally {
    clearInterval(ticker);
    process.stderr.write("\n");
  }
}

/** Holds a lock, so that only one task installs or builds at a time; the lock of a dead owner is ignored. */
export async function withLock(work) {
  const place = createHash("sha256").update(ROOT).digest("hex").slice(0, 16);
  const lock = join(tmpdir(), `errand-setup-${process.getuid?.()}-${place}`);
  for (let waiting = false; !claimed(lock); waiting = true) {
    if (!waiting) say("Waiting for another task to finish its set-up ...");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    return await work();
  } finally {
    fs.rmSync(lock, { force: true });
  }
}

function claimed(lock) {
  try {
    fs.writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  try {
    process.kill(Number(fs.readFileSync(lock, "utf8")) || process.pid, 0);
  } catch (error) {
    if (error.code === "ENOENT") return claimed(lock);
    if (error.code === "ESRCH") {
      fs.rmSync(lock, { force: true });
      return claimed(lock);
    }
  }
  return false;
}

export function npm(args, stdio) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith("npm-cli.js") ? run(process.execPath, [cli, ...args], stdio) : run("npm", args, stdio);
}

export function bin(name) {
  return join(ROOT, "node_modules/.bin", name);
}

/** Runs a child that receives our signals; its failure is ours. */
export function run(command, args, stdio = "inherit") {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, stdio });
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    // Ctrl-C reaches the child directly, and many tools take a second one as an order to quit at once.
    const forward = (signal) => (signal === "SIGINT" && process.stdin.isTTY) || child.kill(signal);
    for (const signal of signals) process.on(signal, forward);
    const finish = (outcome) => {
      for (const signal of signals) process.off(signal, forward);
      outcome();
    };
    child.once("error", (error) => finish(() => reject(error)));
    child.once("exit", (code, signal) => {
      if (code === 0) return finish(resolve);
      const status = signal === null ? code : 128 + constants.signals[signal];
      finish(() => reject(new Failed(`${relative(ROOT, command)} ${args[0]}: exit code ${status}`, status)));
    });
  });
}
