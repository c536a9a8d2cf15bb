/**
 * The rows of a history: each process appends its own to a file, before it sends a call and after the answer. Times
 * are in milliseconds of this machine's monotonic clock.
 */
import * as z from "zod";

/** The request or the answer; the fields depend on the operation. */
const factsSchema = z.object({
  /** The principal of the request. */
  as: z.string().optional(),
  /** The idempotency key, which is also in the task's text. */
  key: z.string().optional(),
  id: z.string().optional(),
  target: z.string().optional(),
  lease: z.string().optional(),
  fence: z.number().optional(),
  state: z.string().optional(),
  version: z.number().optional(),
  /** The text of a reply, an artifact or an answer. */
  text: z.string().optional(),
  outcome: z.string().optional(),
  /** The question and the request whose answer is used, whether this call was the first, and its key. */
  asked: z.string().optional(),
  used: z.string().optional(),
  use_key: z.string().optional(),
  /** A subscription to notifications, and a link that answers, which came by one. */
  subscription: z.string().optional(),
  link: z.string().optional(),
  /** What an answer or a rule decides. */
  decision: z.string().optional(),
  /** A rule, and what was asked of it: the pattern of actions, bounds of their argument `n`, and its ends. */
  rule: z.string().optional(),
  pattern: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  most: z.number().optional(),
  /** When the call was sent, and when its answer arrived, by the wall clock, ms, which is also Redis'. */
  from_ms: z.number().optional(),
  to_ms: z.number().optional(),
  /** The state that a reply asks for, or `retry`. */
  wants: z.string().optional(),
  status: z.number().optional(),
  code: z.string().optional(),
  reason: z.string().optional(),
  via: z.string().optional(),
  /** What the lease has used so far, as a heartbeat or a reply reports it. */
  tokens: z.number().optional(),
  grants: z
    .array(
      z.object({
        id: z.string(),
        lease: z.string(),
        fence: z.number(),
        attempt: z.number(),
        /** By Redis' clock, ms. */
        granted_at: z.number(),
        /** Of a wait for all children that has ended: how many of them had not. */
        unended: z.number().optional(),
      }),
    )
    .optional(),
});
export type Facts = z.infer<typeof factsSchema>;

/** `info`: no answer, or an answer that leaves open whether it happened (Jepsen's rule). */
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
  /** Hash of the parts that every reader of this event must see alike. */
  hash: z.string(),
};

export const rowSchema = z.discriminatedUnion("row", [
  z
    .object({ ...stamp, row: z.literal("call"), n: z.string(), op: z.string(), phase: z.enum(PHASES) })
    .extend(factsSchema.shape),
  /** A subscriber (identified by its name over all its connections) received an event. */
  z.object({ ...stamp, row: z.literal("event"), sub: z.string(), cursor: z.string(), ...eventShape }),
  /** A subscriber connects, as this principal, from this cursor. */
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
  /** A notification of a subscription arrived. */
  z.object({
    ...stamp,
    row: z.literal("notice"),
    subscription: z.string(),
    /** The principal that is notified. */
    as: z.string(),
    notice: z.string(),
    type: z.string(),
    /** The delegation; empty: of several. */
    id: z.string(),
    /** What of the delegation it tells, in words that differ for everything that it may tell. */
    what: z.string(),
    /** How many it stands for. */
    count: z.number(),
    genuine: z.boolean(),
  }),
  /** A state that an A2A stream or task showed. */
  z.object({ ...stamp, row: z.literal("a2a"), id: z.string(), stream: z.string(), state: z.string() }),
  /** An event of an AG-UI run; the state is the outcome, where the event has one. */
  z.object({
    ...stamp,
    row: z.literal("agui"),
    id: z.string(),
    stream: z.string(),
    type: z.string(),
    state: z.string(),
  }),
  /** No gateway ran from and to these instants, by the wall clock, ms, which is also Redis'. */
  z.object({ ...stamp, row: z.literal("outage"), from: z.number(), to: z.number() }),
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
