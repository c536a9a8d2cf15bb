/** `errand stats`: the figures of the last hour or day. */
import { type Command, Option } from "commander";
import { Admin } from "../../client/admin.ts";
import { costText, usageText } from "../../client/usage.ts";
import { durationText } from "../../client/words.ts";
import { type Durations, type Stats, type StatsPeriod, statsPeriodSchema } from "../../schema/stats.ts";
import { principalSchema } from "../../schema/values.ts";
import { type Cli, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, valid } from "../input/arguments.ts";
import { oneLine, printJson, printTable } from "../show/output.ts";

interface StatsOptions extends GlobalOptions {
  readonly period: StatsPeriod;
  readonly delegator?: string;
  readonly byAgent?: boolean;
  readonly headers: boolean;
}

const ABOUT = `
Times are estimates. The queue figures are the highest of the samples that the broker
takes twice a minute, and of one taken now. --by-agent counts by quarters of an hour: the last 60 to 75 minutes.`;

export function addStats(program: Command, { host }: Cli): void {
  program
    .command("stats")
    .description(
      "show the last hour or day: throughput, queue length, times to a worker and to completion, and failures",
    )
    .argument("[agent]", "only work for this agent", agentName)
    .addOption(
      new Option("--period <period>", "how far back").choices(statsPeriodSchema.options).default("hour"),
    )
    .option("--delegator <principal>", "only what this principal delegated", valid(principalSchema))
    .option("--by-agent", "how the work of each agent ended in the last hour, and its cost")
    .option("--no-headers", "print no header line")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples("errand stats", "errand stats scout --period day --json", "errand stats --by-agent"),
    )
    .action(async (target: string | undefined, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<StatsOptions>();
      const { period, delegator } = options;
      if (options.byAgent) {
        if (target !== undefined || delegator !== undefined || period !== "hour")
          throw usageError("--by-agent takes no agent, no --delegator and no other --period");
        return printByAgent(host, options);
      }
      const stats = await new Admin(await connectToRead(host, options)).stats({ period, target, delegator });
      if (options.json) return printJson(host, stats);
      await printTable(host, rowsOf(stats), options.headers);
    });
}

async function printByAgent(host: CliHost, options: StatsOptions): Promise<void> {
  const figures = await new Admin(await connectToRead(host, options)).statsByAgent();
  if (options.json) return printJson(host, figures);
  const rows = figures.agents.map(({ agent, completed, failed, rejected, canceled, costs }) => [
    agent,
    ...[completed, failed, rejected, canceled].map(String),
    costs.map(costText).join(", ") || "-",
  ]);
  await printTable(host, [BY_AGENT, ...rows], options.headers);
}

const BY_AGENT = ["AGENT", "COMPLETED", "FAILED", "REJECTED", "CANCELED", "COST"];

function rowsOf({ period, target, delegator, buckets, totals }: Stats): string[][] {
  const latest = buckets.at(-1);
  const most = (pick: "waiting" | "working") => Math.max(...buckets.map((bucket) => bucket[pick] ?? 0));
  const queue =
    latest?.waiting === null
      ? []
      : [
          ["highest waiting", String(most("waiting"))],
          ["highest working", String(most("working"))],
          [
            "longest wait",
            durationText(1000 * Math.max(...buckets.map(({ oldest_seconds }) => oldest_seconds ?? 0))),
          ],
        ];
  return [
    [`LAST ${period}`.toUpperCase(), target ?? delegator ?? "all agents"],
    ...(["sent", "leased", "completed", "failed", "rejected", "canceled"] as const).map((name) => [
      name,
      String(totals[name]),
    ]),
    ...totals.failures.map(({ code, count }) => [`  ${oneLine(code, 60)}`, String(count)]),
    ["time to worker", durationsText(totals.time_to_lease)],
    ["time to completion", durationsText(totals.time_to_answer)],
    ...(totals.usage ? [["reported usage", usageText({ ...totals.usage, complete: true })]] : []),
    ...queue,
  ];
}

const durationsText = (durations: Durations): string =>
  durations === null
    ? "-"
    : `about half within ${durationText(durations.median_seconds * 1000)}, about 95 % within ${durationText(durations.p95_seconds * 1000)}`;
