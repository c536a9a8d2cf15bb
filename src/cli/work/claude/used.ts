/** What the processes of one run have used together. */
import { AMOUNTS, type UsageReport } from "../../../schema/usage.ts";

/** Undefined if none of them reported anything. The model is that of the last one. */
export function sumOf(reports: readonly UsageReport[]): UsageReport | undefined {
  const last = reports.at(-1);
  if (last === undefined) return undefined;
  const sums = AMOUNTS.flatMap((name) => {
    const given = reports.flatMap((report) => report[name] ?? []);
    return given.length === 0 ? [] : [[name, given.reduce((all, one) => all + one, 0)] as const];
  });
  const currency = reports.findLast((report) => report.currency !== undefined)?.currency;
  return { ...last, ...Object.fromEntries(sums), ...(currency !== undefined && { currency }) };
}
