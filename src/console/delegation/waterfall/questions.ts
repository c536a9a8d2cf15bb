/** The questions of a delegation, for the marks in its row: what was asked, and who answered. */
import * as z from "zod";
import { isFollowUp, textOf } from "../../../schema/a2a.ts";
import type { Delegation, Interrupt } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { asks } from "../../data/listed.ts";
import { count, decided, nameOf, plainTitle } from "../../ui/words.ts";

export interface Question {
  readonly id: string;
  /** In milliseconds since 1970; null: only the answer is known. */
  readonly askedAt: number | null;
  /** Null: it is not answered. */
  readonly answeredAt: number | null;
  /** The first line; empty if it is not known. */
  readonly text: string;
  /** `approved by ann`; empty while it is open. */
  readonly outcome: string;
  /** The words of the answer; empty if there are none, or if they are not known. */
  readonly answer: string;
}

/** In characters. */
const MAX_TEXT = 120;
const cut = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);
const answerSchema = z.object({
  by: optional(z.string()),
  at: optional(z.string()),
  interrupt_id: optional(z.string()),
  decision: optional(z.string()),
  auto: optional(z.boolean()),
  answer_preview: optional(z.string()),
});

type Answer = Pick<z.infer<typeof answerSchema>, "by" | "decision" | "auto">;

/** `words`: of the answer. Its data is in the conversation, which knows what in it is secret. */
function outcomeOf({ by, decision, auto }: Answer, words: string) {
  const what = `${decided(decision)}${auto ? " in advance" : ""}`;
  return {
    outcome: `${what}${by === undefined ? "" : ` by ${nameOf(by)}`}`,
    answer: cut(plainTitle(words)),
  };
}

/** What the delegation itself says: its answers, and the open question. */
export function questionsFrom({ history, interrupt }: Pick<Delegation, "history" | "interrupt">) {
  const found = new Map<string, Question>();
  for (const message of history) {
    if (message.role !== "ROLE_USER" || isFollowUp(message)) continue;
    const answer = answerSchema.parse(message.metadata ?? {});
    const { interrupt_id: id = "", at = "" } = answer;
    found.set(id, {
      id,
      askedAt: null,
      answeredAt: Date.parse(at),
      text: "",
      ...outcomeOf(answer, textOf(message)),
    });
  }
  if (interrupt) found.set(interrupt.id, open(interrupt.id, interrupt.raised_at, interrupt.requests));
  return [...found.values()];
}

function open(id: string, at: string, requests: Interrupt["requests"]): Question {
  const [first] = requests;
  const more = requests.length > 1 ? `${count(requests.length, "question")}: ` : "";
  const text = `${more}${cut(plainTitle(first ? textOf(first.message) : ""))}`;
  return { id, askedAt: Date.parse(at), answeredAt: null, text, outcome: "", answer: "" };
}

/** What the events say. */
export function questionsOf(events: readonly DelegationEvent[]): readonly Question[] {
  const found = new Map<string, Question>();
  let last = "";
  /** Whether the last question is known, and its answers are words. */
  let isAnsweredInWords = false;
  const end = (event: DelegationEvent, how: Pick<Question, "outcome" | "answer">) => {
    const question = found.get(last);
    if (question && question.outcome === "")
      found.set(last, { ...question, answeredAt: Date.parse(event.at), ...how });
  };
  for (const event of events) {
    if (event.status === "interrupted") {
      const { id, requests } = event.interrupt;
      last = id;
      isAnsweredInWords = requests.every(({ schema }) => schema === undefined);
      if (!found.has(last)) found.set(last, open(last, event.at, requests));
    } else if (event.status === "answered") {
      end(event, outcomeOf(event, isAnsweredInWords ? (event.answer_preview ?? "") : ""));
    } else if (!asks(event.state)) end(event, { outcome: "not answered", answer: "" });
  }
  return [...found.values()];
}
