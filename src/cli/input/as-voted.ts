/**
 * If others have approved something else than the agent proposes: approves the same, or what the agent proposes, which voids
 * their approvals. Options decide, or a prompt on a terminal.
 */
import { Option } from "commander";
import type { Answers } from "../../client/answer.ts";
import { localError } from "../../client/errors.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import { CliError, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { write } from "../show/output.ts";
import { votedChanges, votersText } from "../show/votes.ts";
import { LineReader } from "./line-reader.ts";

export interface AsVoted {
  readonly asVoted?: boolean;
  readonly asProposed?: boolean;
  readonly data?: unknown;
  readonly text?: string;
}

export const asVotedOption = (): Option =>
  new Option("--as-voted", "approve what others have approved, with their changes to the arguments");
export const asProposedOption = (): Option =>
  new Option("--as-proposed", "approve what the agent proposes; this voids approvals with changed arguments");

const HOW =
  "Pass --as-voted to approve the same, or --as-proposed to approve what the agent proposes, which voids their approvals.";

/** Whether an approval without further options would void those of others. */
export const voidsOthers = (
  decision: Decision,
  interrupt: Interrupt,
  { asVoted, asProposed, data }: AsVoted,
): boolean =>
  decision === "approve" &&
  !asVoted &&
  !asProposed &&
  data === undefined &&
  votedOtherwise(interrupt) !== undefined;

/** Refuses to void the approvals of others unasked. */
export function wouldVoid({ id }: Pick<Delegation, "id">, interrupt: Interrupt): CliError {
  const { problem } = localError({
    code: "invalid_request",
    category: "PROTOCOL",
    detail: `${votersText(interrupt)} approved ${id} with changes: ${votedChanges(interrupt)}`,
    recovery: HOW,
  });
  return new CliError({ ...problem, delegation_id: id });
}

/** What others have approved, with this person's own comment. Throws if nobody has approved anything. */
export function votedAnswer(interrupt: Interrupt, text: string | undefined): Answers {
  const { answers, given = [] } = interrupt.votes ?? {};
  if (answers === undefined || given.length === 0)
    throw usageError("nobody has approved it yet", "Omit --as-voted.");
  const [first] = interrupt.requests;
  const comment =
    text === undefined || !first ? {} : { [first.request_id]: { ...answers[first.request_id], text } };
  return { answers: { ...answers, ...comment } };
}

/** Shows on the terminal what others have approved, and asks whether to approve the same. */
export async function confirmVoted(
  host: CliHost,
  delegation: Delegation,
  interrupt: Interrupt,
): Promise<void> {
  const voids = wouldVoid(delegation, interrupt);
  if (!host.isTty.stdin || !host.isTty.stderr) throw voids;
  await write(host.stderr, `${voids.message}\n`);
  const reader = await LineReader.open(host);
  try {
    const line = await reader.next("Approve the same? [y/N] ");
    if (!/^\s*y(es)?\s*$/i.test(line ?? "")) throw usageError("not confirmed", `Nothing was sent. ${HOW}`);
  } finally {
    reader.close();
  }
}
