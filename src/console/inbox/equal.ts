/**
 * Equal questions: the same agent proposes the same action with the same arguments, and takes the same answers. Who has
 * seen the action of one has seen that of all, so they may be decided together.
 */
import { sortedJson } from "../../schema/sorted-json.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { isDecidable, readAction } from "../needs/proposal.ts";
import type { Asked } from "../needs/rows.ts";

export interface Group {
  /** The same as long as the group has its first question, or one that equals it. */
  readonly key: string;
  readonly members: readonly [Asked, ...Asked[]];
}

/** In the order of their first questions. What waits for the approvals of others is not decided with what needs the reader. */
export function groupsOf(
  rows: readonly Asked[],
  isForOthers: (listed: ListedDelegation) => boolean,
): readonly Group[] {
  const found = new Map<string, [Asked, ...Asked[]]>();
  for (const row of rows) {
    const key = (isForOthers(row.listed) ? null : equality(row.listed)) ?? row.id;
    const group = found.get(key);
    if (group) group.push(row);
    else found.set(key, [row]);
  }
  return [...found].map(([key, members]) => ({ key, members }));
}

const known = new WeakMap<object, string | null>();

/** The same text for equal questions; null: it equals no other. */
export function equality({
  target,
  interrupt,
}: Pick<ListedDelegation, "target" | "interrupt">): string | null {
  if (interrupt === null) return null;
  let text = known.get(interrupt);
  if (text === undefined) {
    text = textOf(target, interrupt);
    known.set(interrupt, text);
  }
  return text;
}

function textOf(target: string, interrupt: NonNullable<ListedDelegation["interrupt"]>): string | null {
  const [request] = interrupt.requests;
  const action = readAction(request);
  if (!request || action === null || !isDecidable(interrupt)) return null;
  const { options, schema } = request;
  return sortedJson([
    target,
    action.name,
    action.arguments,
    action.isEditable,
    options ?? [],
    schema ?? null,
    // The ids of requests differ.
    Object.values(votedOtherwise(interrupt) ?? {}),
  ]);
}
