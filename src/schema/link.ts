/**
 * Answer links: a question's page for the person that a notification went to. Limit: whoever has a link acts as that person,
 * on this one question.
 */
import * as z from "zod";
import { decisionSchema } from "./decision.ts";
import { interruptSchema } from "./delegation.ts";
import { agentNameSchema, delegationIdSchema, principalSchema } from "./values.ts";
import { questionVotesSchema } from "./votes.ts";

export const LINK_TOKEN = /^lnk_[A-Za-z0-9_-]{43}$/;
/** The secret of a link: what follows `#` in its URL. */
const linkTokenSchema = z.string().regex(LINK_TOKEN, "not the secret of a link");

/** To see the question of a link. */
export const linkQuestionRequestSchema = z.strictObject({
  /** What follows `#` in the link. */
  token: linkTokenSchema,
});

/** To answer the question of a link. */
export const linkAnswerRequestSchema = z
  .strictObject({
    /** What follows `#` in the link. */
    token: linkTokenSchema,
    /** Yes or no, for every request of the question. */
    decision: decisionSchema.optional(),
    /** The answer in words, one of the question's options, or a comment beside a decision; up to 10,000 characters. */
    text: z.string().min(1).max(10_000).optional(),
  })
  .refine(({ decision, text }) => decision !== undefined || text !== undefined, {
    error: "decision or text must be given",
    path: ["decision"],
  });

/** What the page of a link shows. */
export const linkQuestionSchema = z.strictObject({
  /** In whose name it is answered. */
  person: principalSchema,
  /** Who asks. */
  agent: agentNameSchema,
  /** The delegation. */
  delegation_id: delegationIdSchema,
  /** The first 100 bytes of the task. */
  task_preview: z.string(),
  /** The question, whole. */
  interrupt: interruptSchema,
  /** How it can be answered here: by a decision, by one of its options or free text, or only after a sign-in. */
  answer: z.enum(["decision", "text", "sign_in"]),
  /**
   * Why this link can deny the question, but not approve it; absent: it can do both. `not_counted`: by the agent's `votes`, the
   * person's approval does not count. `given`: the person has approved already. `other_votes`: others have approved another
   * answer, such as changed arguments, and an approval of what the page shows would void theirs.
   */
  no_approval: z.enum(["not_counted", "given", "other_votes"]).optional(),
});
export type LinkQuestion = z.infer<typeof linkQuestionSchema>;

/** The question of the link is answered, or has one more approval. */
export const linkAnsweredSchema = z.strictObject({
  /** The delegation. Its agent continues, unless `votes` is there. */
  delegation_id: delegationIdSchema,
  /** The approvals so far, if the question needs more. */
  votes: questionVotesSchema.pick({ needed: true, given: true }).optional(),
});
export type LinkAnswered = z.infer<typeof linkAnsweredSchema>;
