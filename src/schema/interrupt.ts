/**
 * Questions, answers, follow-ups and bulk requests. Limit: `options` and `schema` are hints of the agent; answers are
 * not checked against them.
 */
import * as z from "zod";
import { agentMessageInputSchema, messageInputSchema, messageSchema } from "./a2a.ts";
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

const questionShape = {
  request_id: requestIdSchema.optional(),
  text: z.string().min(1).optional(),
  message: agentMessageInputSchema.optional(),
  options: z.array(z.unknown()).max(100).optional(),
  schema: z.unknown().optional(),
};
export const questionSchema = z.strictObject(questionShape).refine(hasAtMostOneText, TWO_TEXTS);
export type QuestionInput = z.output<typeof questionSchema>;

/** One question, or several under `requests`; the text is optional. */
export const interruptRequestSchema = z
  .strictObject({
    kind: z.enum(["input", "auth"]),
    ...questionShape,
    requests: z.array(questionSchema).min(1).max(32).optional(),
    expires_in_seconds: z.number().min(1).max(31_536_000).optional(),
    /** Saved with the delegation in the same move, as by a heartbeat. */
    checkpoint: checkpointSchema.nullable().optional(),
  })
  .refine(hasAtMostOneText, TWO_TEXTS)
  .refine(
    ({ requests, request_id, text, message, options, schema }) =>
      requests === undefined ||
      [request_id, text, message, options, schema].every((member) => member === undefined),
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

export const decisionSchema = z.enum(["approve", "deny"]);

/** The answer to one request. */
export const givenAnswerSchema = z.strictObject({
  decision: decisionSchema.optional(),
  message: messageSchema.optional(),
  data: z.unknown().optional(),
});
export type GivenAnswer = z.infer<typeof givenAnswerSchema>;
export const givenAnswersSchema = z.record(z.string(), givenAnswerSchema);

/** `answers` is present if the question was already answered; the agent then keeps the lease. */
export const interruptResultSchema = z.strictObject({
  interrupt_id: z.string(),
  answers: givenAnswersSchema.optional(),
});
export type InterruptResult = z.infer<typeof interruptResultSchema>;

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
