/** The columns of lists of delegations: `errand list`, as a list and as trees. */
import { costText } from "../../client/usage.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { shortIds } from "../input/short-id.ts";
import { ageColumn, type Column } from "./list-table.ts";
import { oneLine, statePaint, stateText } from "./output.ts";

/**
 * Only what a line shows, because whole delegations may have megabytes. Of a delegation whose node alone may be read, the
 * rest is absent.
 */
export type Listed = Pick<Delegation, "created_at" | "delegator" | "id" | "parent_id" | "state" | "target"> &
  Partial<
    Pick<
      Delegation,
      | "attempt"
      | "context_id"
      | "error"
      | "max_attempts"
      | "priority"
      | "task_preview"
      | "updated_at"
      | "usage"
    >
  >;

export interface DelegationRow {
  readonly one: Listed;
  /** Unique in its page. */
  readonly shortId: string;
  /** The branches of a tree before it. */
  readonly branch?: string;
}

export const COLUMNS: readonly Column<DelegationRow>[] = [
  {
    name: "id",
    cell: ({ one, shortId, branch = "" }, wide) => branch + (wide ? one.id : shortId),
    identifier: ({ one }) => one.id,
    isWhole: true,
    // Cleaned text loses its indent.
    isClean: true,
  },
  {
    name: "state",
    cell: ({ one }) => stateText(one.state),
    paint: ({ one }, paint) => statePaint(one.state, paint),
  },
  { name: "target", cell: ({ one }) => one.target },
  { name: "delegator", cell: ({ one }) => one.delegator },
  ageColumn("age", ({ one }) => one.created_at, { wideName: "created" }),
  ageColumn("updated", ({ one }) => one.updated_at ?? null, { shown: "wide" }),
  {
    name: "attempt",
    cell: ({ one }) => (one.attempt === undefined ? "-" : `${one.attempt}/${one.max_attempts}`),
    shown: "wide",
  },
  { name: "priority", cell: ({ one }) => String(one.priority ?? "-"), shown: "named" },
  { name: "context", cell: ({ one }) => one.context_id ?? "-", shown: "wide" },
  { name: "parent", cell: ({ one }) => one.parent_id ?? "-", shown: "named" },
  { name: "error", cell: ({ one }) => one.error?.code ?? "-", shown: "named" },
  { name: "tokens", cell: ({ one }) => tokensCell(one), shown: "named" },
  { name: "cost", cell: ({ one }) => (one.usage && costText(one.usage.total)) || "-", shown: "named" },
  { name: "task", cell: ({ one }) => taskCell(one), isText: true },
];

export function delegationRows(delegations: readonly Listed[]): DelegationRow[] {
  const short = shortIds(delegations.map(({ id }) => id));
  return delegations.map((one) => ({ one, shortId: short.get(one.id) ?? one.id }));
}

/** Of a delegation that the caller may not read. */
const NODE_ONLY = "-";

function tokensCell({ usage }: Listed): string {
  if (usage === undefined) return "-";
  const { input_tokens = 0, output_tokens = 0 } = usage.total;
  return String(input_tokens + output_tokens);
}

/** The error, if there is one, and the task. */
function taskCell({ error, state, task_preview = NODE_ONLY }: Listed): string {
  return error && error.code !== state ? `(${oneLine(error.code)}) ${task_preview}` : task_preview;
}
