/**
 * Prints every event that its token may see, one per line, across restarts of the broker and of itself: it stores the
 * cursor of the last event in a file. Needs ERRAND_URL and ERRAND_TOKEN (a viewer's sees all).
 * Usage: watcher.ts [CURSOR-FILE]. Limit: older events than the broker keeps are gone; a RESET line says so.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { Delegator } from "../src/index.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: watcher.ts [CURSOR-FILE]

Prints every event, and stores its cursor in the file. Reads ERRAND_URL and ERRAND_TOKEN (a viewer's sees all).
`);
  process.exit(0);
}

const file = process.argv[2];
const stopped = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopped.abort());

/** No cursor yet: start with the oldest event. */
const after = file === undefined ? undefined : await readFile(file, "utf8").catch(() => "0");

async function keep(cursor: string): Promise<void> {
  if (file === undefined) return;
  await writeFile(`${file}.new`, cursor);
  await rename(`${file}.new`, file);
}

const delegator = new Delegator({
  failFast: false,
  onRetry: (error) => process.stderr.write(`the broker is away: ${error.message}\n`),
});
process.stdout.write("watching\n");
try {
  for await (const event of delegator.watch({}, { after, signal: stopped.signal })) {
    const line =
      event.type === "RESET" || event.type === "DELEGATION_SNAPSHOT"
        ? [event.type]
        : [event.at, event.delegation_id, event.seq, event.target, event.type, event.status ?? event.state];
    process.stdout.write(`${line.join(" ")}\n`);
    await keep(event.id);
  }
} catch (error) {
  if (!stopped.signal.aborted) throw error;
}
