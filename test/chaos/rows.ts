/**
 * The lines of a history: each process appends its own to a file, before a call is sent and after it was answered.
 * Limit: times are of the one monotonic clock of this machine, in milliseconds.
 */
import * as z from "zod";

/** What was asked or answered; which fields there are depends on the operation. */
const factsSchema = z.object({
  /** The principal that asked. */
  as: z.string().optional(),
  /** The idempotency key, which the task's text carries too. */
  key: z.string().optional(),
  id: z.string().optional(),
  target: z.string().optional(),
  lease: z.string().optional(),
  fence: z.number().optional(),
  state: z.string().optional(),
  version: z.number().optional(),
  /** What a reply, an artifact or an answer says. */
  text: z.string().optional(),
  outcome: z.string().optional(),
  /** What a reply asks for: an end, or `retry`. */
  wants: z.string().optional(),
  status: z.number().optional(),
  code: z.string().optional(),
  reason: z.string().optional(),
  via: z.string().optional(),
  grants: z
    .array(
      z.object({
        id: z.string(),
        lease: z.string(),
        fence: z.number(),
        attempt: z.number(),
        /** By Redis' clock, ms. */
        granted_at: z.number(),
      }),
    )
    .optional(),
});
export type Facts = z.infer<typeof factsSchema>;

/** `info`: no answer, or one that leaves open whether it happened (Jepsen's rule). */
export const PHASES = ["invoke", "ok", "fail", "info"] as const;
export type Phase = (typeof PHASES)[number];

const stamp = { t: z.number(), proc: z.string() };
const eventShape = {
  id: z.string(),
  seq: z.number(),
  type: z.string(),
  status: z.string(),
  state: z.string(),
  delegator: z.string(),
  target: z.string(),
  /** Of what every reader of this event must see alike. */
  hash: z.string(),
};

export const rowSchema = z.discriminatedUnion("row", [
  z
    .object({ ...stamp, row: z.literal("call"), n: z.string(), op: z.string(), phase: z.enum(PHASES) })
    .extend(factsSchema.shape),
  /** A subscriber (by its name, over all its connections) got an event. */
  z.object({ ...stamp, row: z.literal("event"), sub: z.string(), cursor: z.string(), ...eventShape }),
  /** A subscriber connects: whose eyes, from which cursor. */
  z.object({ ...stamp, row: z.literal("subscribe"), sub: z.string(), as: z.string(), from: z.string() }),
  z.object({ ...stamp, row: z.literal("reset"), sub: z.string(), cursor: z.string() }),
  /** A callback or push notification arrived. */
  z.object({
    ...stamp,
    row: z.literal("delivery"),
    kind: z.enum(["callback", "push"]),
    id: z.string(),
    seq: z.number(),
    state: z.string(),
    genuine: z.boolean(),
  }),
  /** What an A2A stream or task showed. */
  z.object({ ...stamp, row: z.literal("a2a"), id: z.string(), stream: z.string(), state: z.string() }),
  z.object({
    ...stamp,
    row: z.literal("fault"),
    fault: z.string(),
    on: z.string(),
    phase: z.enum(["begin", "end"]),
  }),
]);
export type Row = z.infer<typeof rowSchema>;
export type RowOf<K extends Row["row"]> = Extract<Row, { row: K }>;

export const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
