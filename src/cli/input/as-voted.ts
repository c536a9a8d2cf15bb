/**
 * If others have approved something else than the agent proposes: approves the same, or what the agent proposes, which voids
 * their approvals. Options decide, or a prompt on a terminal.
 */
import { Option } from "commander";
import type { Answers } from "../../client/answer.ts";
import { localError } from "../../client/errors.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import type { AnswerBody } from "../../schema/interrupt.ts";
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

/** The first request that others have decided. A text beside an option or data alone is another answer, no comment. */
const commented = ({ requests, votes }: Pick<Interrupt, "requests" | "votes">) =>
  requests.find(({ request_id }) => votes?.answers?.[request_id]?.decision !== undefined);

/** Whether what others have approved can be approved with a comment. */
export const takesComment = (interrupt: Interrupt): boolean => commented(interrupt) !== undefined;

/** What others have approved, with this person's own comment. Throws if nobody has approved anything, or it takes no comment. */
export function votedAnswer(
  interrupt: Interrupt,
  comment: Pick<AnswerBody, "text" | "message"> = {},
): Answers {
  const { answers, given = [] } = interrupt.votes ?? {};
  if (answers === undefined || given.length === 0)
    throw usageError("nobody has approved it yet", "Omit --as-voted.");
  const { text, message } = comment;
  if (text === undefined && message === undefined) return { answers };
  const request = commented(interrupt);
  if (request === undefined)
    throw usageError(
      `a comment would make it another answer than that of ${votersText(interrupt)}: ${votedChanges(interrupt)}`,
      "Approve the same without a text or files.",
    );
  const said = message === undefined ? { text } : { message };
  return { answers: { ...answers, [request.request_id]: { ...answers[request.request_id], ...said } } };
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
    if (!(await reader.agrees("Approve the same?")))
      throw usageError("not confirmed", `Nothing was sent. ${HOW}`);
  } finally {
    reader.close();
  }
}
