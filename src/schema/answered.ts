/**
 * Settled questions: what was answered by whom and by which way, and what expired unanswered. Limit: previews and bounded
 * changes only; the history of the delegation has the texts.
 */
import * as z from "zod";
import { boundedChangesSchema } from "./changes.ts";
import { decisionSchema } from "./decision.ts";
import { toldSchema } from "./notice.ts";
import {
  agentNameSchema,
  delegationIdSchema,
  givenInstantSchema,
  instantSchema,
  principalSchema,
} from "./values.ts";
import { voteSchema } from "./votes.ts";

/**
 * The way of an answer, as far as the broker knows it for sure: the API; `console`: the HTTP API with the session of a
 * sign-in; `rest`: the HTTP API with a token, which the CLI and the library use, too; `auto`: approved in advance;
 * `rule`: by a rule; `link`: by the link of a notification.
 */
export const answerWaySchema = z.enum(["console", "rest", "mcp", "a2a", "ag-ui", "auto", "rule", "link"]);
export type AnswerWay = z.infer<typeof answerWaySchema>;

/** What an answer changed in the arguments of the proposed actions, by request_id. */
export const changesByRequestSchema = z.record(z.string(), boundedChangesSchema);
export type ChangesByRequest = z.infer<typeof changesByRequestSchema>;

/** An answer in short. */
export const shownAnswerShape = {
  /** For a question with the choices approve and deny. */
  decision: decisionSchema.optional(),
  /** The beginning of the answer. */
  answer_preview: z.string().optional(),
  /** True: the answer is a secret, which only the agent gets. */
  redacted: z.literal(true).optional(),
};

/** The same of an answer that a rule may have given. */
export const ruledAnswerShape = {
  ...shownAnswerShape,
  /** The id of the rule that answered, in the name of its creator. */
  rule: z.string().optional(),
};

export const settledRequestSchema = z.strictObject({
  /** The id of the request in its question. */
  request_id: z.string(),
  /** The beginning of the question's text; empty: not known. */
  question_preview: z.string(),
  /** The name of the action that it proposed. */
  action: z.string().optional(),
  ...ruledAnswerShape,
  /** What the answer changed in the arguments of the action. */
  changes: boundedChangesSchema.optional(),
});
/** One request of a settled question, with its answer. */
export type SettledRequest = z.infer<typeof settledRequestSchema>;

/** What became of a question: somebody answered, or nobody did in time. */
export const answerOutcomeSchema = z.enum(["answered", "expired"]);

export const settledQuestionSchema = z.strictObject({
  /** The delegation whose agent asked. */
  delegation_id: delegationIdSchema,
  /** The agent. */
  target: agentNameSchema,
  /** The principal that delegated it. */
  delegator: principalSchema,
  /** The conversation that the delegation belongs to. */
  context_id: z.string(),
  /** The first 100 bytes of the task. */
  task_preview: z.string(),
  /** The id of the question. */
  interrupt_id: z.string(),
  /** `auth` asks for a credential. Null: an earlier version of the broker asked the question. */
  kind: z.enum(["input", "auth"]).nullable(),
  /** `expired`: nobody answered in time. */
  outcome: answerOutcomeSchema,
  /** When it was asked. Null: as for `kind`. */
  asked_at: instantSchema.nullable(),
  /** When it was answered, or expired. */
  settled_at: instantSchema,
  /** Who answered; null if it expired. */
  by: principalSchema.nullable(),
  /** By which way: `console`, `rest`, `mcp`, `a2a`, `ag-ui`, `auto`, `rule` or `link`, or one of a later version; null if it expired. */
  via: z.string().nullable(),
  /** Everybody who approved it, oldest first, if the agent needs the approvals of several people; also if it expired. */
  votes: z.array(voteSchema).optional(),
  /** What it asked, and the answers. */
  requests: z.array(settledRequestSchema),
  /** Of a question that expired, if it needed approvals: how many. */
  needed: z.int().min(1).optional(),
  /** Of a question that expired: who was notified of it, and how, newest first. Absent: it was answered. */
  told: z.array(toldSchema).optional(),
});
/** A question that was answered, or expired unanswered. */
export type SettledQuestion = z.infer<typeof settledQuestionSchema>;

export const answersFilterSchema = z.strictObject({
  /** The agent that asked. */
  target: agentNameSchema.optional(),
  /** The principal that delegated. */
  delegator: principalSchema.optional(),
  /** Who answered, or was one of several who approved. */
  by: principalSchema.optional(),
  /** Of at least one of its requests. */
  decision: decisionSchema.optional(),
  /** Whether it was answered. */
  outcome: answerOutcomeSchema.optional(),
  /** Answered or expired at or after this instant. */
  since: givenInstantSchema.optional(),
});
/** The filters of the list of answers; all given ones apply. */
export type AnswersFilter = z.input<typeof answersFilterSchema>;

/** A page of questions that were answered, or expired unanswered, newest first. */
export const answersPageSchema = z.strictObject({
  /** The questions, newest first. May be empty before the last page. */
  answers: z.array(settledQuestionSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});
