/** The built program on a pseudo-terminal, which Python opens. Limit: needs a build. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { PATH } from "./program.ts";

const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const SPAWNING = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";

/** `errand ARGS…`; its environment is only PATH and `env`. */
export function atTerminal(args: readonly string[], env: Record<string, string>) {
  const child = spawn("python3", ["-c", SPAWNING, process.execPath, MAIN, ...args], {
    env: { PATH, ...env },
    stdio: "pipe",
  });
  const closed = once(child, "close");
  onTestFinished(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await closed;
  });
  let screen = "";
  child.stdout.on("data", (bytes: Buffer) => {
    screen += bytes.toString();
  });
  return { child, closed, screen: () => screen };
}
