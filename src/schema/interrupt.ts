/**
 * Questions, answers, follow-ups and bulk requests. Limit: whether an answer fits its question is checked by
 * answer-rules.ts, because it takes both.
 */
import * as z from "zod";
import { agentMessageInputSchema, messageInputSchema, messageSchema } from "./a2a.ts";
import { actionSchema } from "./delegation.ts";
import { jsonSchemaSchema } from "./json-schema/json-schema.ts";
import { agentNameSchema, checkpointSchema, delegationIdSchema, instantSchema } from "./values.ts";

const TWO_TEXTS = { error: "give at most one of text and message", path: ["text"] };
const hasAtMostOneText = (body: { text?: unknown; message?: unknown }): boolean =>
  body.text === undefined || body.message === undefined;

/** As long as a messageId, because a messageId may serve as the request id. */
const requestIdSchema = z
  .string()
  .min(1)
  .max(1024)
  .refine((id) => id !== "__proto__", "must not be __proto__: no answer could name it");

export const decisionSchema = z.enum(["approve", "deny"]);
export type Decision = z.infer<typeof decisionSchema>;
export const isDecision = (value: unknown): value is Decision => decisionSchema.safeParse(value).success;

const questionShape = {
  request_id: requestIdSchema.optional(),
  text: z.string().min(1).optional(),
  message: agentMessageInputSchema.optional(),
  options: z.array(z.unknown()).max(100).optional(),
  schema: jsonSchemaSchema.optional(),
  action: actionSchema.optional(),
  edit: z.boolean().optional(),
};

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

const questionSchema = z
  .strictObject(questionShape)
  .refine(hasAtMostOneText, TWO_TEXTS)
  .refine(editsAction, EDITS_NOTHING)
  .refine(offersDecision, HIDES_DECISION);
export type QuestionInput = z.output<typeof questionSchema>;

/** One question, or several under `requests`; the text is optional. */
export const interruptRequestSchema = z
  .strictObject({
    kind: z.enum(["input", "auth"]),
    ...questionShape,
    requests: z.array(questionSchema).min(1).max(32).optional(),
    expires_in_seconds: z.number().min(1).max(31_536_000).optional(),
    /** The lease does not end: its holder waits for the answer, and extends it by heartbeats. */
    hold: z.boolean().optional(),
    /** For so long after the answer, only the worker that asks gets the delegation. It has no effect on a held question. */
    sticky_seconds: z.number().min(0).max(3_600).optional(),
    /** Saved with the delegation in the same move, as by a heartbeat. */
    checkpoint: checkpointSchema.nullable().optional(),
  })
  .refine(hasAtMostOneText, TWO_TEXTS)
  .refine(editsAction, EDITS_NOTHING)
  .refine(offersDecision, HIDES_DECISION)
  .refine(
    ({ requests, request_id, text, message, options, schema, action, edit }) =>
      requests === undefined ||
      [request_id, text, message, options, schema, action, edit].every((member) => member === undefined),
    { error: "give the question either at the top or under requests", path: ["requests"] },
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
  decision: decisionSchema.optional(),
  message: messageSchema.optional(),
  data: z.unknown().optional(),
});
export type GivenAnswer = z.infer<typeof givenAnswerSchema>;
export const givenAnswersSchema = z.record(z.string(), givenAnswerSchema);

/**
 * `answers` is present if the question was already answered; the agent then keeps the lease. `held_until`: the question is
 * held, and the lease expires at this instant.
 */
export const interruptResultSchema = z.strictObject({
  interrupt_id: z.string(),
  held_until: instantSchema.optional(),
  answers: givenAnswersSchema.optional(),
});
export type InterruptResult = z.infer<typeof interruptResultSchema>;

export const useRequestSchema = z.strictObject({
  interrupt_id: z.string().min(1).max(255),
  request_id: requestIdSchema,
  /** Chosen by the holder for one use; a repeat of the call has the same one. */
  use_key: z.string().regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces"),
});
export type UseRequest = z.output<typeof useRequestSchema>;
/** `answer` is absent if another call has used it: what it allowed may have been done. */
export const useResultSchema = z.strictObject({
  used: z.enum(["now", "before"]),
  answer: givenAnswerSchema.optional(),
});
export type UseResult = z.infer<typeof useResultSchema>;

const answerShape = {
  decision: decisionSchema.optional(),
  text: z.string().min(1).optional(),
  message: messageInputSchema.optional(),
  data: z.unknown().optional(),
};
const hasAnswer = (body: {
  decision?: unknown;
  text?: unknown;
  message?: unknown;
  data?: unknown;
}): boolean => [body.decision, body.text, body.message, body.data].some((member) => member !== undefined);
const NO_ANSWER = { error: "give a decision, text, message or data", path: ["text"] };

export const answerSchema = z
  .strictObject(answerShape)
  .refine(hasAtMostOneText, TWO_TEXTS)
  .refine(hasAnswer, NO_ANSWER);
export type AnswerInput = z.output<typeof answerSchema>;
/** An answer as sent: any of `decision`, `text` or `message`, and `data`. */
export type AnswerBody = z.input<typeof answerSchema>;

export const answerRequestSchema = z
  .strictObject({
    interrupt_id: z.string().min(1).max(255),
    ...answerShape,
    answers: z.record(requestIdSchema, answerSchema).optional(),
  })
  .refine(hasAtMostOneText, TWO_TEXTS)
  .refine((body) => (body.answers === undefined) === hasAnswer(body), {
    error: "give either one answer (decision, text, message, data) or answers by request_id",
    path: ["answers"],
  });
export type AnswerRequest = z.output<typeof answerRequestSchema>;
export type AnswerRequestInput = z.input<typeof answerRequestSchema>;

export const messageRequestSchema = z
  .strictObject({ text: z.string().min(1).optional(), message: messageInputSchema.optional() })
  .refine((body) => (body.text === undefined) !== (body.message === undefined), {
    error: "give exactly one of text and message",
    path: ["text"],
  });
export type MessageRequest = z.output<typeof messageRequestSchema>;

/** Selects delegations of an agent, older than `before`. */
export const bulkRequestSchema = z.strictObject({
  target: agentNameSchema,
  error_code: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/)
    .optional(),
  before: instantSchema.optional(),
  limit: z.int().min(1).max(1000).default(100),
});
export type BulkRequest = z.output<typeof bulkRequestSchema>;

/** A delegation that a bulk request could not change, and why. */
export const bulkRefusedSchema = z.strictObject({
  delegation_id: delegationIdSchema,
  code: z.string(),
  detail: z.string(),
});
export type BulkRefused = z.infer<typeof bulkRefusedSchema>;
