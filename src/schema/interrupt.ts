/**
 * Questions, answers, follow-ups and bulk requests. Limit: whether an answer fits its question is checked by
 * answer-rules.ts, because it takes both.
 */
import * as z from "zod";
import { agentMessageInputSchema, messageInputSchema, messageSchema } from "./a2a.ts";
import { decisionSchema } from "./decision.ts";
import { actionSchema, delegationSchema } from "./delegation.ts";
import { jsonSchemaSchema } from "./json-schema/json-schema.ts";
import { atMostOne, exactlyOne, withRule } from "./rules.ts";
import {
  agentNameSchema,
  checkpointSchema,
  delegationIdSchema,
  errorCodeSchema,
  instantSchema,
} from "./values.ts";

/** As long as a messageId, because a messageId may serve as the request id. */
const requestIdSchema = z
  .string()
  .min(1)
  .max(1024)
  .refine((id) => id !== "__proto__", "must not be __proto__: no answer could name it");

const questionShape = {
  /**
   * Identifies the request within the question, 1 to 1024 characters. Default: the `messageId` of the message, or a
   * new id.
   */
  request_id: requestIdSchema.optional(),
  /** The question in words; this or `message`. */
  text: z.string().min(1).optional(),
  /** The question as an A2A Message; this or `text`. */
  message: agentMessageInputSchema.optional(),
  /**
   * The choices, up to 100: an answer is one of them. Beside an action they are strings, with approve and deny among
   * them.
   */
  options: z.array(z.unknown()).max(100).optional(),
  /** A JSON Schema that the answer's `data` must fit, up to 64 KiB. */
  schema: jsonSchemaSchema.optional(),
  /** The action that the agent takes if the answer is `approve`. */
  action: actionSchema.optional(),
  /** Whether the answer's `data` may replace the action's arguments. Requires an action. */
  edit: z.boolean().optional(),
};

type QuestionMember = keyof typeof questionShape;
const QUESTION_MEMBERS = [
  "request_id",
  "text",
  "message",
  "options",
  "schema",
  "action",
  "edit",
] as const satisfies readonly QuestionMember[];

const EDITS_NOTHING = { error: "requires an action whose arguments can be edited", path: ["edit"] };
const editsAction = ({ action, edit }: { action?: unknown; edit?: boolean | undefined }): boolean =>
  edit !== true || action !== undefined;

const HIDES_DECISION = {
  error: "beside an action, must be strings, approve and deny among them",
  path: ["options"],
};
/** Text chooses the other options of an action, because `data` is for its arguments. */
const offersDecision = ({
  action,
  options = [],
}: {
  action?: unknown;
  options?: readonly unknown[] | undefined;
}): boolean =>
  action === undefined ||
  options.length === 0 ||
  (options.every((option) => typeof option === "string") &&
    decisionSchema.options.every((decision) => options.includes(decision)));

/** One request of a question. */
export const questionSchema = z
  .strictObject(questionShape)
  .check(atMostOne("text", "message"))
  .refine(editsAction, EDITS_NOTHING)
  .refine(offersDecision, HIDES_DECISION);
export type QuestionInput = z.output<typeof questionSchema>;

/** One question, or several under `requests`; the text is optional. */
export const interruptRequestSchema = z
  .strictObject({
    /** `input`: the agent needs input; `auth`: it needs a credential, which only its next lease shows. */
    kind: z.enum(["input", "auth"]),
    ...questionShape,
    /** Several requests, 1 to 32, in place of the members for one. */
    requests: z.array(questionSchema).min(1).max(32).optional(),
    /**
     * Unless it is answered within this time, 1 second to a year, the delegation fails with `interrupt_expired`.
     * Default: the agent's setting.
     */
    expires_in_seconds: z.number().min(1).max(31_536_000).optional(),
    /** True: the lease does not end; its holder waits for the answer, and extends it by heartbeats. */
    hold: z.boolean().optional(),
    /**
     * For so long after the answer, up to 3600 seconds, only the worker that asks gets the delegation. It has no
     * effect on a held question.
     */
    sticky_seconds: z.number().min(0).max(3_600).optional(),
    /** Saved with the delegation in the same step, as by a heartbeat; null deletes it. */
    checkpoint: checkpointSchema.nullable().optional(),
  })
  .check(atMostOne("text", "message"))
  .refine(editsAction, EDITS_NOTHING)
  .refine(offersDecision, HIDES_DECISION)
  .check(
    withRule<"requests" | QuestionMember>(
      { needs: [], apart: QUESTION_MEMBERS.map((name) => ["requests", name]) },
      (body) => body.requests === undefined || QUESTION_MEMBERS.every((name) => body[name] === undefined),
      { error: "give the question either at the top or under requests", path: ["requests"] },
    ),
  )
  .refine(
    ({ requests = [] }) => {
      const ids = requests.flatMap(({ request_id }) => request_id ?? []);
      return new Set(ids).size === ids.length;
    },
    { error: "each request_id must be unique", path: ["requests"] },
  );
export type InterruptRequest = z.output<typeof interruptRequestSchema>;
export type InterruptInput = z.input<typeof interruptRequestSchema>;

/** The answer to one request. */
export const givenAnswerSchema = z.strictObject({
  /** Yes or no. */
  decision: decisionSchema.optional(),
  /** The answer in words. */
  message: messageSchema.optional(),
  /** Any JSON value that fits the question. */
  data: z.unknown().optional(),
});
export type GivenAnswer = z.infer<typeof givenAnswerSchema>;
/** The answers, by `request_id`. */
export const givenAnswersSchema = z.record(z.string(), givenAnswerSchema);

/** The question that was asked. */
export const interruptResultSchema = z.strictObject({
  /** Identifies the question. */
  interrupt_id: z.string(),
  /** The question is held, and the lease expires at this instant; absent: the lease has ended. */
  held_until: instantSchema.optional(),
  /** The question was already answered, and the agent keeps the lease; absent: it is open. */
  answers: givenAnswersSchema.optional(),
});
export type InterruptResult = z.infer<typeof interruptResultSchema>;

/** The answer to take. */
export const useRequestSchema = z.strictObject({
  /** The question. */
  interrupt_id: z.string().min(1).max(255),
  /** The request within the question. */
  request_id: requestIdSchema,
  /**
   * Chosen by the holder for one use; a repeat of the call has the same one. 1 to 128 printable ASCII characters
   * without spaces.
   */
  use_key: z.string().regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces"),
});
export type UseRequest = z.output<typeof useRequestSchema>;
/** Whether this call got the answer. */
export const useResultSchema = z.strictObject({
  /** `now`: this call has the answer; `before`: another call took it. */
  used: z.enum(["now", "before"]),
  /** The answer; absent if another call took it: what it allowed may have been done. */
  answer: givenAnswerSchema.optional(),
});
export type UseResult = z.infer<typeof useResultSchema>;

const answerShape = {
  /** Yes or no. */
  decision: decisionSchema.optional(),
  /** The answer in words, or one of the question's options; this or `message`. */
  text: z.string().min(1).optional(),
  /** The answer as an A2A Message; this or `text`. */
  message: messageInputSchema.optional(),
  /** Any JSON value: one that fits the question's schema, one of its options, or new arguments of its action. */
  data: z.unknown().optional(),
};
const ANSWER_MEMBERS = ["decision", "text", "message", "data"] as const;
type AnswerMember = (typeof ANSWER_MEMBERS)[number];
const hasAnswer = (body: { readonly [P in AnswerMember]?: unknown }): boolean =>
  ANSWER_MEMBERS.some((name) => body[name] !== undefined);

export const answerSchema = z
  .strictObject(answerShape)
  .check(atMostOne("text", "message"))
  .check(
    withRule<AnswerMember>({ needs: ANSWER_MEMBERS, apart: [] }, hasAnswer, {
      error: "give a decision, text, message or data",
      path: ["text"],
    }),
  );
export type AnswerInput = z.output<typeof answerSchema>;
/** An answer as sent: any of `decision`, `text` or `message`, and `data`. */
export type AnswerBody = z.input<typeof answerSchema>;

/** The answer to an open question: one answer, or several by `request_id`. */
export const answerRequestSchema = z
  .strictObject({
    /** The question, as `interrupt.id` of the delegation. */
    interrupt_id: z.string().min(1).max(255),
    ...answerShape,
    /** The answers by `request_id`, if the question has several requests; in place of the members for one. */
    answers: z.record(requestIdSchema, answerSchema).optional(),
  })
  .check(atMostOne("text", "message"))
  .check(
    withRule<"answers" | AnswerMember>(
      {
        needs: [...ANSWER_MEMBERS, "answers"],
        apart: ANSWER_MEMBERS.map((name) => ["answers", name]),
      },
      (body) => (body.answers === undefined) === hasAnswer(body),
      {
        error: "give either one answer (decision, text, message, data) or answers by request_id",
        path: ["answers"],
      },
    ),
  );
export type AnswerRequest = z.output<typeof answerRequestSchema>;
export type AnswerRequestInput = z.input<typeof answerRequestSchema>;

/** A follow-up: `text` or `message`. */
export const messageRequestSchema = z
  .strictObject({
    /** The message as text; this or `message`. */
    text: z.string().min(1).optional(),
    /** The message as an A2A Message; this or `text`. */
    message: messageInputSchema.optional(),
  })
  .check(exactlyOne("text", "message"));
export type MessageRequest = z.output<typeof messageRequestSchema>;

/** Which delegations of an agent to change. */
export const bulkRequestSchema = z.strictObject({
  /** The agent. */
  target: agentNameSchema,
  /** Only those whose error has this code, in snake_case. */
  error_code: errorCodeSchema.optional(),
  /** Only those that are older than this instant: `next_before` of the page before. */
  before: instantSchema.optional(),
  /** How many at most, 1 to 1000. */
  limit: z.int().min(1).max(1000).default(100),
});
export type BulkRequest = z.output<typeof bulkRequestSchema>;

/** Which live delegations of an agent to cancel. */
export const bulkCancelRequestSchema = bulkRequestSchema.omit({ error_code: true });

/** A delegation that a bulk request could not change, and why. */
export const bulkRefusedSchema = z.strictObject({
  /** The delegation. */
  delegation_id: delegationIdSchema,
  /** The code of the error. */
  code: z.string(),
  /** Why it was not changed. */
  detail: z.string(),
});
export type BulkRefused = z.infer<typeof bulkRefusedSchema>;

/** What a bulk request changed. */
export const bulkResultSchema = z.strictObject({
  /** The changed or new delegations. */
  delegations: z.array(delegationSchema),
  /** Those that could not be changed. */
  refused: z.array(bulkRefusedSchema),
  /** Send it as `before` to continue; null: there are no more. */
  next_before: instantSchema.nullable(),
});
