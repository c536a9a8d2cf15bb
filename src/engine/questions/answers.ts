/**
 * Lists settled questions, newest first: those that were answered, and those that expired unanswered. Everything about
 * them is in the events of their delegations. Limit: as a list of delegations, a page scans a bounded part of one index, so
 * it may be short or empty although there is a next one.
 */
import * as z from "zod";
import type { Entry } from "../../events/entry.ts";
import { READERS, type Readable } from "../../lifecycle/fields.ts";
import { readSummaries } from "../../lifecycle/summary.ts";
import { textOf } from "../../schema/a2a.ts";
import type { AnswersFilter, SettledQuestion, SettledRequest } from "../../schema/answered.ts";
import { interruptSchema } from "../../schema/delegation.ts";
import { answeredEventSchema, failedEventSchema } from "../../schema/event.ts";
import { toInstant } from "../../schema/values.ts";
import { canSee, type Principal } from "../access/access.ts";
import type { Scans } from "../broker.ts";
import { BATCH, type Lists, type Position, scan, toPlan } from "../delegations/list.ts";
import { preview } from "../delegations/preview.ts";
import { PAGE_BYTES } from "../delegations/read-many.ts";
import { invalidCursor } from "../list-cursor.ts";
import { readTold } from "../subscriptions/told.ts";
import { type EventPlace, readEventsAt } from "./events-at.ts";

export interface AnswersQuery extends AnswersFilter {
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface AnswersPage {
  readonly answers: readonly SettledQuestion[];
  readonly next_cursor: string | null;
}

const QUESTION_BYTES = 300;

/** A member of the index: the delegation, and the numbers of the event that settled the question and of its own event. */
const MEMBER = /^(dlg_[0-9a-z_]+) (\d{1,6}) (\d{1,6})$/;

function startOf(cursor: string | undefined): Position {
  if (cursor === undefined) return { at: Number.POSITIVE_INFINITY, id: "" };
  const match = /^(\d{1,16})\.(dlg_[0-9a-z_]+)\.(\d{1,6})\.(\d{1,6})$/.exec(cursor);
  if (match) return { at: Number(match[1]), id: match.slice(2).join(" ") };
  throw invalidCursor();
}

const cursorOf = (next: Position | null): string | null =>
  next && `${next.at}.${next.id.replaceAll(" ", ".")}`;

export function listAnswers(broker: Lists, principal: Principal, query: AnswersQuery): Promise<AnswersPage> {
  return broker.readLimiter.run(principal, () => page(broker, principal, query));
}

/** A settled question as the index and the event that settled it have it. */
interface Settled {
  readonly position: Position;
  readonly entry: Entry;
  /** Null: it expired. */
  readonly answered: z.infer<typeof answerSchema> | null;
  readonly interrupt_id: string;
  /** If it needed approvals. */
  readonly approvals: Pick<SettledQuestion, "needed" | "votes">;
  readonly question: EventPlace;
}

interface Found {
  readonly hits: readonly Settled[];
  readonly next: Position | null;
}

async function page(broker: Scans, principal: Principal, query: AnswersQuery): Promise<AnswersPage> {
  const { hits, next } = await find(broker, principal, query);
  const { questions, count } = await readQuestions(broker, hits);
  const shown = hits.slice(0, count);
  const ids = [...new Set(shown.map(({ entry }) => entry.delegation_id))];
  const summaries = await readSummaries(broker.bulk, broker.shards, ids, { previews: true });
  const previews = new Map(summaries.flatMap((one) => (one ? [[one.id, one.task_preview]] : [])));
  const told = await Promise.all(
    shown.map(({ answered, entry, interrupt_id }) =>
      answered ? undefined : readTold(broker.bulk, entry.delegation_id, interrupt_id),
    ),
  );
  const answers = shown.flatMap((hit, at) => {
    const task_preview = previews.get(hit.entry.delegation_id);
    const whom = told[at];
    // The delegation was erased meanwhile.
    if (task_preview === undefined) return [];
    return [{ ...toAnswer(hit, questions[at] ?? null, task_preview), ...(whom && { told: whom }) }];
  });
  const isCut = count < hits.length;
  return { answers, next_cursor: cursorOf(isCut ? (shown.at(-1)?.position ?? next) : next) };
}

/** The matches of a page, and where the next one begins. */
async function find(broker: Scans, principal: Principal, query: AnswersQuery): Promise<Found> {
  const { target, delegator, since } = query;
  const plan = await toPlan(broker, principal, { target, delegator, since }, "answers:");
  const hits: Settled[] = [];
  let position = startOf(query.cursor);
  for (let scanned = 0; scanned < plan.most; ) {
    const positions = await scan(broker, plan, position);
    const settled = await readSettled(broker, positions);
    for (const [at, one] of settled.entries()) {
      position = positions[at] ?? position;
      scanned += 1;
      if (one && matches(query, one) && (await canSee(broker, principal, recordOf(one.entry))))
        hits.push(one);
      if (hits.length === query.limit) return { hits, next: position };
    }
    if (positions.length < BATCH) return { hits, next: null };
  }
  return { hits, next: position };
}

/** In the order of the positions; null where the delegation is deleted by now. */
async function readSettled(broker: Scans, positions: readonly Position[]): Promise<(Settled | null)[]> {
  const members = positions.map((position) => ({ position, match: MEMBER.exec(position.id) }));
  const places = members.map(({ match }) => ({ id: match?.[1] ?? "", seq: Number(match?.[2]) }));
  const read: (Settled | null)[] = [];
  while (read.length < places.length) {
    const entries = await readEventsAt(broker, places.slice(read.length));
    for (const entry of entries) {
      const { position, match } = members[read.length] ?? {};
      const question = { id: match?.[1] ?? "", seq: Number(match?.[3]) };
      read.push(entry && position ? toSettled(position, entry, question) : null);
    }
  }
  return read;
}

const answerSchema = answeredEventSchema.pick({
  interrupt_id: true,
  by: true,
  via: true,
  votes: true,
  answers: true,
  changes: true,
});
/** What the events of answered and of expired questions both have. */
const settledEventSchema = z.object({
  interrupt_id: z.string(),
  ...failedEventSchema.pick({ needed: true, votes: true }).shape,
});

function toSettled(position: Position, entry: Entry, question: EventPlace): Settled {
  const more: unknown = JSON.parse(`{${entry.more}}`);
  // The answer that denies a larger budget has no event of its own: it is in the last event of its delegation.
  const answered =
    entry.status === "answered" ? answerSchema.parse(more) : (answerSchema.safeParse(more).data ?? null);
  const { interrupt_id, ...approvals } = settledEventSchema.parse(more);
  return { position, entry, answered, interrupt_id, approvals, question };
}

function matches(query: AnswersQuery, { entry, answered }: Settled): boolean {
  if (query.target !== undefined && query.target !== entry.target) return false;
  if (query.delegator !== undefined && query.delegator !== entry.delegator) return false;
  if (query.outcome !== undefined && (query.outcome === "answered") !== (answered !== null)) return false;
  const people = [answered?.by, ...(answered?.votes ?? []).map(({ by }) => by)];
  if (query.by !== undefined && !people.includes(query.by)) return false;
  const decisions = Object.values(answered?.answers ?? {}).map(({ decision }) => decision);
  return query.decision === undefined || decisions.includes(query.decision);
}

const recordOf = (entry: Entry): Readable<"delegator" | "target" | "created_at"> => ({
  get: (name) => READERS[name].read(entry[name]),
});

const askedEventSchema = z.object({
  interrupt: interruptSchema.pick({ id: true, kind: true, requests: true }),
});
type Question = z.infer<typeof askedEventSchema>["interrupt"] & { readonly at: number };

/** The questions, null where one is not known, and how many of them fit into one response; at least one. */
async function readQuestions(broker: Scans, hits: readonly Settled[]) {
  const questions: (Question | null)[] = [];
  let size = 0;
  while (questions.length < hits.length) {
    const some = hits.slice(questions.length).map(({ question }) => question);
    for (const entry of await readEventsAt(broker, some)) {
      const hit = hits[questions.length];
      size += (entry?.more.length ?? 0) + (hit?.entry.more.length ?? 0);
      if (size > PAGE_BYTES && questions.length > 0) return { questions, count: questions.length };
      questions.push(hit && entry ? toQuestion(hit, entry) : null);
    }
  }
  return { questions, count: hits.length };
}

/** Null for the event of another question. */
function toQuestion({ interrupt_id }: Settled, { at, more }: Entry): Question | null {
  const asked = askedEventSchema.safeParse(JSON.parse(`{${more}}`)).data?.interrupt;
  return asked?.id === interrupt_id ? { ...asked, at } : null;
}

function toAnswer(
  { entry, answered, interrupt_id, approvals }: Settled,
  question: Question | null,
  task_preview: string,
): SettledQuestion {
  const { delegation_id, target, delegator, context_id, at } = entry;
  return {
    ...{ delegation_id, target, delegator, context_id, task_preview, interrupt_id },
    kind: question?.kind ?? null,
    outcome: answered ? "answered" : "expired",
    asked_at: question && toInstant(question.at),
    settled_at: toInstant(at),
    by: answered?.by ?? null,
    via: answered?.via ?? null,
    requests: toRequests(answered, question),
    ...approvals,
  };
}

function toRequests(answered: Settled["answered"], question: Question | null): SettledRequest[] {
  const known = question?.requests.map(({ request_id, message, action }) => ({
    request_id,
    question_preview: preview(textOf(message), QUESTION_BYTES),
    ...(action && { action: action.name }),
  }));
  const asked =
    known ?? Object.keys(answered?.answers ?? {}).map((request_id) => ({ request_id, question_preview: "" }));
  return asked.map((request) => {
    const changes = answered?.changes?.[request.request_id];
    return { ...request, ...answered?.answers[request.request_id], ...(changes && { changes }) };
  });
}
