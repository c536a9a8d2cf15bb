/** `npm run prove -- chaos`: see --help. Exits 0 when the checker found nothing, 1 when it did, 64 on a wrong option. */
import { breakBrokers } from "./break-brokers.ts";
import { helpOf, UsageError } from "./flags.ts";
import { FLAGS, readOptions } from "./options.ts";
import { screen, writeReport } from "./report.ts";
import { runChaos } from "./run.ts";

const HELP = `npm run prove -- chaos [options]

Runs gateways, agents, delegators and subscribers as processes, breaks them, Redis and its network, and checks the history
of what every process observed. The seed fixes the load and the faults.

${helpOf(FLAGS)}`;

const print = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(HELP);
    return 0;
  }
  const options = readOptions(args);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (!stop.signal.aborted) print("\nstopping; the checker reads what was recorded so far");
      stop.abort();
    });
  }
  const live = process.stderr.isTTY;
  const progress = (line: string) => live && process.stderr.write(`\r\u001b[K${line}`);
  const hooks = {
    say: (line: string) => print(live ? `\r\u001b[K${line}` : line),
    progress,
    stop: stop.signal,
  };
  if (options.defect !== null) return breakBrokers(options, hooks);
  const run = await runChaos(options, hooks);
  process.stdout.write(screen(run));
  if (options.report !== null) writeReport(options.report, run);
  return run.found.size === 0 ? 0 : 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  print(error.message);
  process.exitCode = 64;
}
// Explicitly: after reset connections Node 20 may never finish closing its handles.
process.stdout.write("", () => process.exit());
