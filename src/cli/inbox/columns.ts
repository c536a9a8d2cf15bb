/** The lines of an inbox, plain and interactive. */
import { timeLeft } from "../../client/words.ts";
import type { CliHost } from "../host.ts";
import { shortIds } from "../input/short-id.ts";
import { type Column, ListTable } from "../show/list-table.ts";
import { statePaint } from "../show/output.ts";
import { ageText } from "../show/time.ts";
import { type Entry, isQuestion, isVoted } from "./entry.ts";

interface Row {
  readonly entry: Entry;
  readonly shortId: string;
  /** In milliseconds since 1970. */
  readonly now: number;
}

/** `3 h left` of a question, `5m ago` of a result. */
function whenText(entry: Entry, now: number): string {
  if (isQuestion(entry)) return `${timeLeft(Date.parse(entry.interrupt.expires_at) - now)} left`;
  return entry.finished_at ? `${ageText(entry.finished_at, now)} ago` : "-";
}

/** The state in words. */
const stateText = (entry: Entry): string =>
  isQuestion(entry) ? (isVoted(entry) ? "approved" : entry.denyOnly ? "deny only" : "asks") : entry.state;

const COLUMNS: readonly Column<Row>[] = [
  { name: "id", cell: ({ shortId }) => shortId, isWhole: true },
  {
    name: "state",
    cell: ({ entry }) => stateText(entry),
    paint: ({ entry }, paint) => statePaint(entry.state, paint),
  },
  { name: "agent", cell: ({ entry }) => entry.target },
  { name: "for", cell: ({ entry }) => entry.delegator },
  { name: "when", cell: ({ entry, now }) => whenText(entry, now) },
  { name: "text", cell: ({ entry }) => entry.summary || entry.task, isText: true },
];

/** A head, and a line for each entry. */
export function entryLines(host: CliHost, entries: readonly Entry[], now: number, width?: number): string[] {
  const short = shortIds(entries.map(({ id }) => id));
  const rows = entries.map((entry) => ({ entry, shortId: short.get(entry.id) ?? entry.id, now }));
  return new ListTable(host, COLUMNS, {}, width).lines(rows);
}
