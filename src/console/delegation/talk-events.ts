/**
 * What the conversation takes from the events: reports of progress, and the action, options, schema and time of each
 * question. The history has only a question's text.
 */
import { isFollowUp, type Message } from "../../schema/a2a.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import { type Change, changesOf } from "../../schema/changes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";

export interface Asked extends Pick<Interrupt["requests"][number], "action"> {
  readonly options: readonly unknown[];
  readonly at: string;
  /** Who asked; absent: the agent. */
  readonly by?: string;
}

export interface TalkEvents {
  /** How many events were examined. */
  examined: number;
  readonly reports: DelegationEvent[];
  /** By the id of the question's message. */
  readonly asked: Map<string, Asked>;
  /** The id of the message of each question, by `placeOf`. */
  readonly questions: Map<string, string>;
  /** The arguments of each proposed action, by `placeOf`. */
  readonly proposed: Map<string, unknown>;
  /** The schema of each request, undefined if it has none, by `placeOf`. */
  readonly schemas: Map<string, unknown>;
}

export const noTalkEvents = (): TalkEvents => ({
  examined: 0,
  reports: [],
  asked: new Map(),
  questions: new Map(),
  proposed: new Map(),
  schemas: new Map(),
});

const placeOf = (interrupt: unknown, request: unknown): string => JSON.stringify([interrupt, request]);

/** The arguments that the question of an approval proposed. Undefined: it is no approval, or the question is not known. */
export const proposalOf = ({ metadata }: Message, { proposed }: TalkEvents): unknown =>
  metadata?.decision === "approve"
    ? proposed.get(placeOf(metadata.interrupt_id, metadata.request_id))
    : undefined;

/** What an approval changed in the arguments that were proposed. Null: nothing, or the question is not known. */
export function editOf(message: Message, talk: TalkEvents): readonly Change[] | null {
  const before = proposalOf(message, talk);
  const data = message.parts.findLast((part) => "data" in part)?.data;
  if (data === undefined || before === undefined) return null;
  const changes = changesOf(before, data);
  return changes.length > 0 ? changes : null;
}

/** What the schema of its question says about an answer. Undefined: the question is not known. */
export function schemaOf(
  { metadata }: Message,
  { schemas }: TalkEvents,
): { readonly schema: unknown } | undefined {
  const place = placeOf(metadata?.interrupt_id, metadata?.request_id);
  return schemas.has(place) ? { schema: schemas.get(place) } : undefined;
}

/** The broker asks for a larger budget itself. Undefined: an agent asks. */
export const brokerIn = (interrupt_id: string): string | undefined =>
  isBudgetQuestion(interrupt_id) ? "The broker" : undefined;

/** Examines the events that were added since the last call. */
export function examine(talk: TalkEvents, events: readonly DelegationEvent[]): void {
  for (const event of events.slice(talk.examined)) {
    if (event.status === "progress") talk.reports.push(event);
    if (event.status !== "interrupted") continue;
    const { id, requests } = event.interrupt;
    for (const { message, request_id, schema, action, options = [] } of requests) {
      const place = placeOf(id, request_id);
      const by = brokerIn(id);
      talk.asked.set(message.messageId, { action, options, at: event.at, ...(by && { by }) });
      talk.questions.set(place, message.messageId);
      talk.schemas.set(place, schema);
      if (action) talk.proposed.set(place, action.arguments);
    }
  }
  talk.examined = events.length;
}

/**
 * The answer to each question, by the id of the question's message. Without the events, only a question that was asked alone
 * is known to be that of the answer after it.
 */
export function answersIn(
  history: readonly Message[],
  { questions }: TalkEvents,
): ReadonlyMap<string, Message> {
  const talk = history.filter((message) => !isFollowUp(message));
  const answers = new Map<string, Message>();
  for (const [at, message] of talk.entries()) {
    if (message.role !== "ROLE_USER") continue;
    const [before, last, next] = [talk[at - 2], talk[at - 1], talk[at + 1]];
    const isAlone = before?.role !== "ROLE_AGENT" && next?.role !== "ROLE_USER";
    const alone = last?.role === "ROLE_AGENT" && isAlone ? last.messageId : undefined;
    const { interrupt_id, request_id } = message.metadata ?? {};
    const question = questions.get(placeOf(interrupt_id, request_id)) ?? alone;
    if (question !== undefined) answers.set(question, message);
  }
  return answers;
}

/** The reports before each of the instants, and after the last one. A null instant takes none. */
export function reportsBetween(
  reports: readonly DelegationEvent[],
  instants: readonly (string | null)[],
): readonly (readonly DelegationEvent[])[] {
  let from = 0;
  const groups = instants.map((instant) => {
    const start = from;
    while (instant !== null && (reports[from]?.at ?? "~") <= instant) from += 1;
    return reports.slice(start, from);
  });
  return [...groups, reports.slice(from)];
}
