import { spawn } from "node:child_process";
import { once } from "node:events";
import { platform } from "node:process";
import { expect, onTestFinished, test } from "vitest";
import { endProcessesWith, processesWith } from "../../../src/cli/work/left-behind.ts";

test.runIf(platform === "linux")(
  "only processes with the whole variable are ended, also if they ignore SIGTERM",
  async () => {
    const value = `/tmp/errand-${crypto.randomUUID()}`;
    const start = async (env: Record<string, string>) => {
      const child = spawn("sh", ["-c", "trap '' TERM; echo; exec sleep 600"], {
        env: { PATH: process.env.PATH, ...env },
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      await once(child.stdout, "data");
      return child;
    };
    const marked = await start({ MARK: value, ANOTHER: "x" });
    const others = await Promise.all([
      start({ MARK: `${value}1` }),
      start({ XMARK: value }),
      start({ OTHER: `MARK=${value}` }),
    ]);
    expect(processesWith(`MARK=${value}`)).toEqual([marked.pid]);
    await endProcessesWith(`MARK=${value}`, 50);
    if (marked.signalCode === null) await once(marked, "exit");
    expect(marked.signalCode).toBe("SIGKILL");
    expect(others.map(({ signalCode }) => signalCode)).toEqual([null, null, null]);
    expect(processesWith(`MARK=${value}`, "/nonexistent")).toEqual([]);
  },
);
