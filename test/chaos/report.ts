/** The report of a run: one screen, or a section of a Markdown file that collects runs. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Run } from "./run.ts";

const SHOWN = 12;

const line = (name: string, value: string | number): string => `  ${name.padEnd(24)} ${value}`;
const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

export function screen({ options, summary, verdict, found, kept }: Run): string {
  const { seed, minutes, fsync, rate } = options;
  const violations = verdict.violations
    .slice(0, SHOWN)
    .map(({ rule, id, what }) => `  ${rule}: ${id} ${what}`);
  const rules = [...found].map(([rule, count]) => `${rule} ${count}`).join(", ");
  const clean = verdict.violations.length === 0;
  return [
    `chaos: seed ${seed}, ${minutes} min, ${fsync}, ${shardsText(options)}, ${gatewaysText(options)} gateways, ${rate}/s`,
    line("delegations", `${summary.delegations} (${list(summary.ends)})`),
    line("events", `${summary.events}, seen ${summary.sightings} times`),
    line("leases", `${summary.leases}; late replies refused ${summary.late_replies}`),
    line("budgets", list(summary.budgets)),
    line("conversations", summary.conversations),
    line("rules", list(summary.rules)),
    line("notifications", list(summary.notices)),
    line("votes", list(summary.votes)),
    line("faults", `${Object.values(summary.faults).reduce((a, b) => a + b, 0)} (${list(summary.faults)})`),
    line(
      "calls",
      Object.entries(summary.calls)
        .map(([op, { ok, fail, info }]) => `${op} ${ok}/${fail}/${info}`)
        .join(", "),
    ),
    line("", "(ok/refused/unknown)"),
    line(
      "submit accepted",
      `p50 ${summary.accepted_ms.p50} ms, p99 ${summary.accepted_ms.p99} ms, max ${summary.accepted_ms.max} ms`,
    ),
    line("longest wait of a submit", `${summary.unanswered_ms} ms`),
    line("accepted after a fault", `p50 ${summary.recovered_ms.p50} ms, max ${summary.recovered_ms.max} ms`),
    ...(fsync === "everysec"
      ? [
          line(
            "lost as documented",
            `${summary.void_acknowledgements} delegations, ${verdict.losses.length} observations void`,
          ),
        ]
      : []),
    clean ? "clean: no rule was broken" : `BROKEN: ${rules}`,
    ...violations,
    ...(verdict.violations.length > SHOWN ? [`  and ${verdict.violations.length - SHOWN} more`] : []),
    ...(kept === null ? [] : [`history: ${kept}`]),
    "",
  ].join("\n");
}

const shardsText = ({ shards, cluster }: Run["options"]): string =>
  `${shards} shard${shards === 1 ? "" : "s"}${cluster ? " of a Cluster" : ""}`;

/** `3`, or `3 × 2` for two processes each. */
const gatewaysText = ({ gateways, workers }: Run["options"]): string =>
  workers === 1 ? String(gateways) : `${gateways} × ${workers}`;

const BEGIN = "<!-- chaos:begin -->";
const END = "<!-- chaos:end -->";

const HEAD = [
  "| seed | min | fsync | shards | gateways | delegations | events | seen by readers | leases | faults | submit p50 / p99 ms | longest wait of a submit | accepted after a Redis fault, p50 / max ms | lost | result |",
  "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
];

/** The run as a row of the table. */
function row({ options, summary, verdict }: Run): string {
  const { seed, minutes, fsync } = options;
  const shards = options.cluster ? `${options.shards}, Cluster` : options.shards;
  const gateways = gatewaysText(options);
  const { accepted_ms, unanswered_ms, recovered_ms } = summary;
  const faults = Object.values(summary.faults).reduce((a, b) => a + b, 0);
  const lost = fsync === "everysec" ? `${summary.void_acknowledgements} acknowledged` : "0";
  const result = verdict.violations.length === 0 ? "clean" : `${verdict.violations.length} violations`;
  const cells = [
    ...[seed, minutes, fsync, shards, gateways, summary.delegations, summary.events, summary.sightings],
    ...[summary.leases, faults, `${accepted_ms.p50} / ${accepted_ms.p99}`, `${unanswered_ms} ms`],
    ...[`${recovered_ms.p50} / ${recovered_ms.max}`, lost, result],
  ];
  return `| ${cells.join(" | ")} |`;
}

/**
 * Whether two rows are runs with the same seed, minutes, fsync, shards and gateways; the newer one replaces the
 * older.
 */
function same(a: string, b: string): boolean {
  const head = (text: string) => text.split("|").slice(1, 6).join("|");
  return head(a) === head(b);
}

export function writeReport(path: string, run: Run): void {
  const page = existsSync(path) ? readFileSync(path, "utf8") : `${BEGIN}\n${END}\n`;
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${path} has no ${BEGIN} … ${END} to write between.`);
  const mine = row(run);
  const kept = page
    .slice(begin, end)
    .split("\n")
    .filter((text) => /^\| \d/.test(text) && !same(text, mine));
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}`;
  const section = [BEGIN, `Measured on ${machine}.`, "", ...HEAD, ...kept, mine, ""].join("\n");
  writeFileSync(path, page.slice(0, begin) + section + page.slice(end));
}
