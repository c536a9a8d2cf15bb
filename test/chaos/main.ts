/** `npm run chaos`: see --help. Exits 0 when the checker found nothing, 1 when it did, 64 when it was asked wrongly. */

import { breakBrokers } from "./break-brokers.ts";
import { FAULT_NAMES } from "./faults.ts";
import { DEFAULTS, readOptions, UsageError } from "./options.ts";
import { screen, writeReport } from "./report.ts";
import { runChaos } from "./run.ts";

const HELP = `npm run chaos -- [options]

Runs gateways, agents, delegators and subscribers as processes, breaks Redis, its network and all of them,
and checks the history of what everybody saw. The seed decides what can be decided.

  --seed N          default: of the clock; printed
  --minutes M       how long things are broken (${DEFAULTS.minutes})
  --fsync F         always or everysec (${DEFAULTS.fsync})
  --shards N        key shards (${DEFAULTS.shards})
  --gateways N      (${DEFAULTS.gateways})
  --delegators N    processes with two callers each (${DEFAULTS.delegators})
  --agents N        worker processes over plain HTTP (${DEFAULTS.agents})
  --subscribers N   processes (${DEFAULTS.subscribers})
  --rate R          delegations a second (${DEFAULTS.rate})
  --lease S         seconds of a lease (${DEFAULTS.leaseSeconds})
  --every S         seconds between two faults, about (${DEFAULTS.every})
  --faults A,B      of these alone: ${FAULT_NAMES.join(", ")}
  --defect NAME     break the broker itself, to see the rule of that name find it; all for one after the other
  --report FILE     write the report into that Markdown file, between <!-- chaos:begin --> and <!-- chaos:end -->
  --keep            keep the history; it is kept anyway when something was found
`;

const say = (line: string): void => {
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
      if (!stop.signal.aborted) say("\nstopping; what happened so far is checked");
      stop.abort();
    });
  }
  const live = process.stderr.isTTY;
  const progress = (line: string) => live && process.stderr.write(`\r\u001b[K${line}`);
  const hooks = {
    say: (line: string) => say(live ? `\r\u001b[K${line}` : line),
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
  say(error.message);
  process.exitCode = 64;
}
// Not by itself: after connections that were reset, Node 20 may close its handles for ever.
process.stdout.write("", () => process.exit());
