/** A broker of its own for the scripts beside the tests: the built program, with an embedded Redis in a new folder. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BrowserContext } from "playwright-core";

const PROGRAM = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));

/** Starts a broker, does the work with its URL and the operator's token, and stops it. */
export async function withBroker(work: (url: string, token: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "errand-console-"));
  const broker = spawn(process.execPath, [PROGRAM, "serve"], {
    cwd: folder,
    env: { ...process.env, ERRAND_PORT: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(broker, "exit");
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let log = "";
      broker.stderr.on("data", (chunk) => {
        log = `${log}${chunk}`.slice(-10_000);
        const ready = /errand is ready at (\S+)/.exec(log)?.[1];
        if (ready !== undefined) resolve(ready);
      });
      broker.once("exit", () => reject(new Error(`the broker did not start: ${log}`)));
    });
    const token = (await readFile(join(folder, ".errand", "operator-token"), "utf8")).trim();
    await work(url, token);
  } finally {
    broker.kill("SIGTERM");
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
}

/** The pages of the context are signed in with the token, as if a session had been opened with it. */
export async function signIn(context: BrowserContext, token: string): Promise<void> {
  await context.addInitScript(
    (secret) => localStorage.setItem("errand-session", JSON.stringify({ id: "ses_script", token: secret })),
    token,
  );
}
