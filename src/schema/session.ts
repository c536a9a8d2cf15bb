/** Sessions of people, and the codes that open one. Limit: a secret appears only in the response that creates it. */
import * as z from "zod";
import { instantSchema, principalKindSchema, principalSchema } from "./values.ts";

export const sessionRequestSchema = z.strictObject({
  /** Without one, the request's bearer token opens the session. */
  code: z.string().min(1).max(128).optional(),
});

export const sessionSchema = z.strictObject({
  id: z.string(),
  principal: principalSchema,
  /** The kind of the principal. */
  role: principalKindSchema,
  /** Null for the configured operator token. */
  token_id: z.string().nullable(),
  created_at: instantSchema,
  expires_at: instantSchema,
});
export type Session = z.infer<typeof sessionSchema>;

export const newSessionSchema = sessionSchema.extend({ token: z.string() });
/** A session with its secret, `token`, which is sent like a bearer token and shown only once. */
export type NewSession = z.infer<typeof newSessionSchema>;

/** `current`: the session that sent the request. */
export const listedSessionSchema = sessionSchema.extend({ current: z.boolean() });
export type ListedSession = z.infer<typeof listedSessionSchema>;

export const sessionPageSchema = z.strictObject({
  sessions: z.array(listedSessionSchema),
  next_cursor: z.string().nullable(),
});
export type SessionPage = z.infer<typeof sessionPageSchema>;

export const sessionCodeSchema = z.strictObject({
  code: z.string(),
  /** A link to the console that signs in with the code. */
  url: z.string(),
  expires_at: instantSchema,
});
/** A code that opens one session. */
export type SessionCode = z.infer<typeof sessionCodeSchema>;
