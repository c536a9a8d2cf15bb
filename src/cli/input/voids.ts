/** Asks before an answer voids the approvals of other people. Limit: of those that there are when the question is read. */
import { Admin } from "../../client/admin.ts";
import type { Answer, Answers } from "../../client/answer.ts";
import { localError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { voidedBy } from "../../schema/ballot.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { answerSchema } from "../../schema/interrupt.ts";
import { personOf } from "../../schema/vote-text.ts";
import type { Vote } from "../../schema/votes.ts";
import { CliError, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine, write } from "../show/output.ts";
import { votedChanges } from "../show/votes.ts";
import { LineReader } from "./line-reader.ts";

/** The approvals so far that this answer would void; none if the broker would refuse it. */
export function voidedIn(interrupt: Interrupt, answer: Answer | Answers): readonly Vote[] {
  const [only, second] = interrupt.requests;
  const isSeveral = typeof answer === "object" && "answers" in answer;
  const isOne = only !== undefined && second === undefined;
  const given = isSeveral
    ? Object.entries(answer.answers)
    : isOne
      ? [[only.request_id, answer] as const]
      : [];
  const inputs = given.flatMap(([request_id, one]) => {
    const input = answerSchema.safeParse(typeof one === "string" ? { text: one } : one);
    return input.success ? [[request_id, input.data] as const] : [];
  });
  return voidedBy(interrupt, inputs);
}

/** The same without those of this person. */
export const voidedOf = (votes: readonly Vote[], principal: string): readonly Vote[] =>
  votes.filter(({ by }) => personOf(by) !== personOf(principal));

/** The question with the approvals of others only. */
export const withOthers = (interrupt: Interrupt, principal: string): Interrupt => {
  const { votes } = interrupt;
  return votes
    ? { ...interrupt, votes: { ...votes, given: [...voidedOf(votes.given, principal)] } }
    : interrupt;
};

/** The same for the reader, who is known only if somebody has approved. */
export async function withoutOwn(connection: ConnectionOptions, interrupt: Interrupt): Promise<Interrupt> {
  if (!interrupt.votes?.given.length) return interrupt;
  return withOthers(interrupt, (await new Admin(connection).status()).principal);
}

/** `this voids the approval of approver:ann (replicas 3 → 5)`. */
export function voidsText(interrupt: Interrupt, voided: readonly Vote[]): string {
  const changes = votedChanges(interrupt);
  const people = oneLine(voided.map(({ by }) => by).join(", "));
  return `this voids the approval of ${people}${changes === undefined ? "" : ` (${changes})`}`;
}

interface Voiding {
  readonly delegation: Pick<Delegation, "id">;
  /** With the approvals of others only. */
  readonly interrupt: Interrupt;
  /** They may be voided. */
  readonly yes?: boolean | undefined;
}

/** Asks on the terminal if the answer voids approvals of others. Throws without a terminal, and if the person does not agree. */
export async function confirmVoiding(
  host: CliHost,
  { delegation: { id }, interrupt, yes }: Voiding,
  answer: Answer | Answers,
): Promise<void> {
  const voided = yes ? [] : voidedIn(interrupt, answer);
  if (voided.length === 0) return;
  const text = voidsText(interrupt, voided);
  if (!host.isTty.stdin || !host.isTty.stderr) {
    const { problem } = localError({
      code: "invalid_request",
      category: "PROTOCOL",
      detail: `${id} was not answered: ${text}`,
      recovery: "Pass --yes to send the answer all the same, or --as-voted to approve the same as they did.",
    });
    throw new CliError({ ...problem, delegation_id: id });
  }
  const reader = await LineReader.open(host);
  try {
    if (!(await agreesToVoid(host, reader, text))) throw usageError("not confirmed", "Nothing was sent.");
  } finally {
    reader.close();
  }
}

export async function agreesToVoid(host: CliHost, reader: LineReader, text: string): Promise<boolean> {
  await write(host.stderr, `${text}\n`);
  return reader.agrees("Send it all the same?");
}

/** Says whose earlier approvals the answer has voided. */
export async function noteVoided(host: CliHost, before: Interrupt | null, after: Delegation): Promise<void> {
  const left = after.interrupt?.votes?.given ?? [];
  const voided = (before?.votes?.given ?? []).filter(({ by }) =>
    left.every((vote) => personOf(vote.by) !== personOf(by)),
  );
  if (left.length === 0 || voided.length === 0) return;
  await note(host, `this voids the earlier approval of ${oneLine(voided.map(({ by }) => by).join(", "))}.`);
}
