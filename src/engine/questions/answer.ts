/**
 * Answers an open question: the delegation is queued for its agent again, ahead of new work, with the answer in its
 * history. The answer to an `auth` question is a secret: the history shows only that there is one; the lease has it.
 * A repeat of an answer succeeds. It is recognized by its content. For an `auth` question it is only by its principal and
 * request key, because anything else would confirm a guess of the secret; and for a link, which is used for what it answered
 * itself. Limit: all requests of a question are answered at once.
 */
import { randomBytes } from "node:crypto";
import type { Command } from "../../lifecycle/command.ts";
import { votesMark } from "../../lifecycle/numbers.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type Message, textOf } from "../../schema/a2a.ts";
import type { AnswerWay, ChangesByRequest } from "../../schema/answered.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AnswerInput, AnswerRequest, GivenAnswer } from "../../schema/interrupt.ts";
import { withoutSecrets } from "../../schema/secrets.ts";
import { type Principal, requireControl } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import { bodyHash, requireKey } from "../delegations/idempotency.ts";
import { openInterrupt } from "../delegations/parse.ts";
import { preview } from "../delegations/preview.ts";
import { read } from "../delegations/read.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesOf } from "../files/name-files.ts";
import { ANSWER_METADATA, toUserMessage, withoutAnswerMetadata } from "./answer-message.ts";
import { type Audits, auditDecisions } from "./audit-decisions.ts";
import { requireFitting } from "./fitting.ts";
import { type Asked, type Inputs, shownChanges } from "./shown-changes.ts";
import { type Ballot, ballotFor, type ReadsVotes } from "./votes.ts";

/** To answer a question. */
export type Answers = Moves & NamesFiles & Audits & ReadsVotes;

export interface AnswerCall {
  /** The API that it came by. */
  readonly via: AnswerWay;
  /** Chosen by the client; all repeats of a request have the same one. */
  readonly key?: string | undefined;
  /** Several people have answered parts of it, so where the agent has `votes` it is nobody's approval. */
  readonly ofSeveral?: true;
}

/** Throws `interrupt_not_open` when the question is not open, and `invalid_request` when the answer does not fit it. */
export async function answer(
  broker: Answers,
  principal: Principal,
  id: string,
  request: AnswerRequest,
  { via, key, ofSeveral }: AnswerCall,
): Promise<StoredDelegation> {
  if (key !== undefined) requireKey(key);
  let before = await read(broker, principal, id);
  requireControl(principal, before, "answer its questions");
  const { interrupt_id } = request;
  const open = openInterrupt(before);
  // For a closed question the script only checks whether this answer closed it.
  const given = open?.id === interrupt_id ? byRequest(request, open.requests) : [];
  const inputs = await namingFiles(broker, principal, id, given);
  if (open) requireFitting(id, open, inputs, request.answers === undefined);
  const author = { by: principal.text, via, key };
  for (let round = 0; ; round += 1) {
    const ballot =
      open?.id === interrupt_id
        ? await ballotFor(broker, principal, before, { open, inputs, via, fresh: round > 0 })
        : undefined;
    const command = answerCommand({
      ...{ id, request, author, open, inputs },
      ballot: ballot && ofSeveral ? NOBODY_VOTES : ballot,
    });
    const { outcome, record } = await broker.writer.move(command);
    if (outcome.kind === "ok" && record) {
      await afterMove(broker, id, outcome);
      const isVote = outcome.move === "vote";
      if (open)
        await auditDecisions(broker, principal, { id, target: outcome.target, via, open, inputs, isVote });
      return record;
    }
    if (outcome.kind === "duplicate" && record) return record;
    // Somebody has changed the agent's `votes` meanwhile: read them again.
    if (outcome.kind !== "votes_changed" || round === MAX_ROUNDS) throw refusal(outcome, id);
    before = record ?? before;
  }
}

/** For an answer that is nobody's approval: the script refuses it if the agent has `votes`. */
const NOBODY_VOTES: Ballot = { params: { votes_seen: votesMark(null) }, bytes: 0 };

/** How often the agent's `votes` are read again if they keep changing. */
const MAX_ROUNDS = 5;

/** The author of an answer; `auto`: the broker answers, because this principal approved it in advance, or has a rule for it. */
export interface Author {
  readonly by: string;
  readonly via: AnswerWay;
  readonly auto?: true;
  /** The rules that it answers by, by request_id. */
  readonly rules?: ReadonlyMap<string, string> | undefined;
  readonly key?: string | undefined;
}

interface Answering {
  /** The delegation. */
  readonly id: string;
  readonly request: AnswerRequest;
  readonly author: Author;
  /** The open question; null: there is none. */
  readonly open: (Asked & Pick<Interrupt, "id">) | null;
  /** What the request says to each request of the question. */
  readonly inputs: Inputs;
  /** Undefined: the answer approves nothing. */
  readonly ballot?: Ballot | undefined;
}

/** The command that answers the open question. If the request is for another question, it is only a repeat. */
export function answerCommand({ id, request, author, open, inputs, ballot }: Answering): Command {
  const { interrupt_id } = request;
  const { key, via: _, rules, ...by } = author;
  // The script replaces the stamp with the time of the move. It is random, so no user text contains it.
  const stamp = randomBytes(16).toString("hex");
  const vote = ballot?.params.ballot === undefined ? undefined : (true as const);
  const composed = inputs.map(([request_id, input]) => {
    const heading = { interrupt_id, request_id, ...by, rule: rules?.get(request_id), vote, at: stamp };
    return { request_id, answer: toAnswer(heading, input) };
  });
  const hasContent = composed.some(({ answer: { message } }) => message.parts.length > 0);
  const isAuth = open?.kind === "auth" && open.id === interrupt_id;
  const secret = isAuth && hasContent;
  const changes = open ? shownChanges(open, inputs) : undefined;
  const answersJson = JSON.stringify(
    Object.fromEntries(composed.map(({ request_id, answer }) => [request_id, answer])),
  );
  return {
    move: "answer",
    id,
    params: {
      interrupt_id,
      // A question opened meanwhile must not be closed with no answer.
      only_repeat: open?.id !== interrupt_id || undefined,
      answer_hash: isAuth || author.via === "link" ? undefined : bodyHash(request),
      voter: author.by,
      answer_key: key === undefined ? undefined : bodyHash({ interrupt_id, by: author.by, key }),
      answers: answersJson,
      secret: secret || undefined,
      stamp,
      ...ballot?.params,
      ...(open?.id === interrupt_id && isBudgetQuestion(interrupt_id) && budgetParams(open, inputs)),
    },
    event: eventOf(interrupt_id, author, composed, { secret, asked: open?.requests ?? [], changes }),
    history: composed.map(({ answer: { message } }) => JSON.stringify(secret ? redacted(message) : message)),
    bytes: secret ? Buffer.byteLength(answersJson) : (ballot?.bytes ?? 0),
    read: true,
  };
}

/** What the answer to the broker's question for a larger budget says. */
function budgetParams({ requests }: Asked, [first]: Inputs): Command["params"] {
  const [, { decision, data }] = first ?? [undefined, {}];
  if (decision === "deny") return { denies_budget: true };
  return { raised: JSON.stringify(data ?? requests[0]?.action?.arguments ?? {}) };
}

/** The answers in the order of the requests. Throws when a request has no answer, or an answer no request. */
function byRequest(
  { answers, interrupt_id: _id, ...single }: AnswerRequest,
  requests: readonly { readonly request_id: string }[],
): [request_id: string, input: AnswerInput][] {
  const wanted = requests.map(({ request_id }) => request_id);
  const [only = ""] = wanted;
  if (answers === undefined && wanted.length === 1) return [[only, single]];
  const inputs = answers ?? {};
  const answered = Object.keys(inputs);
  const issues = [
    ...wanted
      .filter((request_id) => !answered.includes(request_id))
      .map((request_id) => ({ path: `answers.${request_id}`, reason: "missing" })),
    ...answered
      .filter((request_id) => !wanted.includes(request_id))
      .map((request_id) => ({
        path: `answers.${request_id}`,
        reason: "the question has no request with this id",
      })),
  ];
  if (issues.length === 0)
    return wanted.flatMap((request_id) => {
      const input = inputs[request_id];
      return input ? [[request_id, input]] : [];
    });
  throw new ErrandError("invalid_request", "The answers do not match the requests of the question.", {
    details: { issues },
  });
}

/** The answers with the files that their messages name. */
const namingFiles = (broker: Answers, principal: Principal, id: string, inputs: Inputs): Promise<Inputs> =>
  Promise.all(
    inputs.map(async ([request_id, input]) => {
      if (!input.message) return [request_id, input] as const;
      return [
        request_id,
        { ...input, message: await nameFilesOf(broker, principal, id, input.message) },
      ] as const;
    }),
  );

interface Heading extends Omit<Author, "key" | "via" | "rules"> {
  readonly rule?: string | undefined;
  /** It is one of the approvals that the question needs; also on the last one. */
  readonly vote?: true | undefined;
  readonly interrupt_id: string;
  readonly request_id: string;
  readonly at: string;
}

/** An answer as it is stored. */
type Composed = GivenAnswer & { readonly message: Message };

/** The answer as the agent gets it, and as the history shows it unless it is a secret. */
function toAnswer(heading: Heading, { decision, text, message, data }: AnswerInput): Composed {
  const parts: Message["parts"] = [...(message?.parts ?? (text === undefined ? [] : [{ text }]))];
  if (data !== undefined) parts.push({ data });
  const { interrupt_id, request_id, by, auto, rule, vote, at } = heading;
  const stamped = toUserMessage({
    ...message,
    parts,
    metadata: {
      ...withoutAnswerMetadata(message?.metadata, ANSWER_METADATA),
      interrupt_id,
      request_id,
      ...(decision && { decision }),
      by,
      ...(auto && { auto }),
      ...(rule !== undefined && { rule }),
      ...(vote && { vote }),
      at,
    },
  });
  return { ...(decision && { decision }), message: stamped, ...(data !== undefined && { data }) };
}

/** Stands for a secret answer in the history: shows the question, the principal, the time and the decision. */
function redacted({ messageId, role, metadata = {} }: Message): Message {
  const { interrupt_id, request_id, decision, by, at } = metadata;
  const shown = { interrupt_id, request_id, ...(decision !== undefined && { decision }), by, at };
  return { messageId, role, parts: [], metadata: { ...shown, redacted: true } };
}

interface Shown {
  /** The answers are secret. */
  readonly secret: boolean;
  readonly asked: Asked["requests"];
  readonly changes: ChangesByRequest | undefined;
}

/** The event's members. A single answer is also shown at the top level, where most readers look. */
function eventOf(
  interrupt_id: string,
  { by, via, auto, rules }: Author,
  composed: readonly { readonly request_id: string; readonly answer: Composed }[],
  { secret, asked, changes }: Shown,
) {
  const shown = composed.map(({ request_id, answer: { decision, message, data } }) => {
    const schema = asked.find((one) => one.request_id === request_id)?.schema;
    // The changes tell what the data of an edit says.
    const isShown = data !== undefined && changes?.[request_id] === undefined;
    const dataText = isShown ? JSON.stringify(withoutSecrets(data, schema)) : "";
    const text = secret ? "" : [textOf(message), dataText].filter(Boolean).join(" ");
    const members = {
      ...(decision && { decision }),
      ...(text !== "" && { answer_preview: preview(text) }),
      ...(secret && { redacted: true }),
      rule: rules?.get(request_id),
    };
    return [request_id, members] as const;
  });
  const [first, second] = shown;
  const { decision, answer_preview, redacted: isRedacted, rule } = (!second && first?.[1]) || {};
  return {
    interrupt_id: JSON.stringify(interrupt_id),
    by: JSON.stringify(by),
    via: JSON.stringify(via),
    auto: auto && "true",
    decision: decision && JSON.stringify(decision),
    answer_preview: answer_preview && JSON.stringify(answer_preview),
    redacted: isRedacted ? "true" : undefined,
    rule: rule && JSON.stringify(rule),
    answers: JSON.stringify(Object.fromEntries(shown)),
    changes: changes && JSON.stringify(changes),
  };
}
