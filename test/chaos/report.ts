/** What a run shows at its end: one screen. */
import { byRule, type Run } from "./run.ts";

const SHOWN = 12;

const line = (name: string, value: string | number): string => `  ${name.padEnd(24)} ${value}`;
const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

export function screen({ options, summary, verdict, kept }: Run): string {
  const { seed, minutes, fsync, shards, gateways, rate } = options;
  const violations = verdict.violations
    .slice(0, SHOWN)
    .map(({ rule, id, what }) => `  ${rule}: ${id} ${what}`);
  const rules = [...byRule(verdict)].map(([rule, count]) => `${rule} ${count}`).join(", ");
  const clean = verdict.violations.length === 0;
  return [
    `chaos: seed ${seed}, ${minutes} min, ${fsync}, ${shards} shard${shards === 1 ? "" : "s"}, ${gateways} gateways, ${rate}/s`,
    line("delegations", `${summary.delegations} (${list(summary.ends)})`),
    line("events", `${summary.events}, seen ${summary.sightings} times`),
    line("leases", `${summary.leases}; late replies refused ${summary.late_replies}`),
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
    line("longest without answer", `${summary.unanswered_ms} ms`),
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
