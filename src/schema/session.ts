/** Sessions of people, and the codes that open one. Limit: a secret appears only in the response that creates it. */
import * as z from "zod";
import { instantSchema, principalKindSchema, principalSchema } from "./values.ts";

/** By what the session is opened. */
export const sessionRequestSchema = z.strictObject({
  /** A code of `createSessionCode`. Without one, the request's bearer token opens the session. */
  code: z.string().min(1).max(128).optional(),
});

export const sessionSchema = z.strictObject({
  /** Identifies the session. */
  id: z.string(),
  /** Whom the session acts for. */
  principal: principalSchema,
  /** The kind of the principal. */
  role: principalKindSchema,
  /** The token that opened it; null: the configured operator token. */
  token_id: z.string().nullable(),
  /** When it was opened. */
  created_at: instantSchema,
  /** When it ends. */
  expires_at: instantSchema,
});
/** A session of a person. */
export type Session = z.infer<typeof sessionSchema>;

export const newSessionSchema = sessionSchema.extend({
  /** The session's secret: send it as a bearer token. Shown only once. */
  token: z.string(),
});
/** A session with its secret, `token`, which is sent like a bearer token and shown only once. */
export type NewSession = z.infer<typeof newSessionSchema>;

/** A session in a list. */
export const listedSessionSchema = sessionSchema.extend({
  /** Whether it sent the request. */
  current: z.boolean(),
});
export type ListedSession = z.infer<typeof listedSessionSchema>;

/** A page of sessions. */
export const sessionPageSchema = z.strictObject({
  /** The sessions; the last to expire is first. */
  sessions: z.array(listedSessionSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});
export type SessionPage = z.infer<typeof sessionPageSchema>;

export const sessionCodeSchema = z.strictObject({
  /** The code; it opens one session. */
  code: z.string(),
  /** A link to the console that signs in with the code. */
  url: z.string(),
  /** When it can no longer be used. */
  expires_at: instantSchema,
});
/** A code that opens one session. */
export type SessionCode = z.infer<typeof sessionCodeSchema>;
