/** The columns of lists of results: what ended, how, and with which words. */
import { textOf } from "../../schema/a2a.ts";
import { type Delegation, isPending } from "../../schema/delegation.ts";
import { shortIds } from "../input/short-id.ts";
import { ageColumn, type Column } from "./list-table.ts";
import { statePaint, stateText } from "./output.ts";
import { requestLine } from "./questions.ts";

export interface ResultRow {
  readonly one: Delegation;
  /** Unique in its page. */
  readonly shortId: string;
}

/** A reply may have megabytes, of which a line shows the beginning. */
const MAX_CHARS = 2000;

export const RESULT_COLUMNS: readonly Column<ResultRow>[] = [
  {
    name: "id",
    cell: ({ one, shortId }, wide) => (wide ? one.id : shortId),
    identifier: ({ one }) => one.id,
    isWhole: true,
  },
  {
    name: "state",
    cell: ({ one }) => stateText(one.state),
    paint: ({ one }, paint) => statePaint(one.state, paint),
  },
  { name: "target", cell: ({ one }) => one.target },
  ageColumn("age", ({ one }) => one.finished_at ?? one.updated_at),
  { name: "context", cell: ({ one }) => one.context_id, shown: "wide" },
  { name: "error", cell: ({ one }) => one.error?.code ?? "-", shown: "named" },
  { name: "task", cell: ({ one }) => one.task_preview, isText: true, shown: "named" },
  { name: "result", cell: ({ one }) => resultText(one), isText: true },
];

export function resultRows(delegations: readonly Delegation[]): ResultRow[] {
  const short = shortIds(delegations.map(({ id }) => id));
  return delegations.map((one) => ({ one, shortId: short.get(one.id) ?? one.id }));
}

/** The question, the error or the reply; while it runs, the task. */
function resultText({ interrupt, error, reply, state, task_preview }: Delegation): string {
  if (interrupt) {
    return interrupt.requests.map((one) => requestLine(one, interrupt.requests.length === 1)).join(" / ");
  }
  if (error) return error.code === state ? error.message : `(${error.code}) ${error.message}`;
  if (reply) return textOf(reply).slice(0, MAX_CHARS);
  return isPending(state) ? task_preview : "";
}
