/**
 * The fields of a subscription's hash, and the notifications in its lanes. Each channel `n` has a lane for the notifications
 * that wait for it, `n`, and one for those that ignore quiet hours, `n!`.
 */
import * as z from "zod";
import { LIMITS } from "../../schema/limits.ts";
import { askedAgainSchema, type NoticeKind, noticeSchema } from "../../schema/notice.ts";
import { subscriptionRequestSchema } from "../../schema/subscription.ts";
import { parseJson } from "../../util/parse-json.ts";

const channelStateSchema = z.object({
  /** Since when its tries fail, ms; absent: the last one did not. */
  since: z.number().optional(),
  /** Why. */
  problem: z.string().optional(),
  paused: z.boolean().optional(),
  /** Whether the last try failed because of the broker, and not of its receiver. */
  ours: z.boolean().optional(),
  /** How often its receiver refused the notification that is first. */
  refusals: z.number().optional(),
  delivered_at: z.number().optional(),
});
export type ChannelState = z.infer<typeof channelStateSchema>;

/** What is left of a request, once its defaults are filled in. */
const settingsSchema = subscriptionRequestSchema;
export type Settings = z.output<typeof settingsSchema>;

const storedSchema = z.object({
  owner: z.string(),
  /** What stands for the token of its owner (`Tokens.holderOf`). */
  token: z.string(),
  settings: z.string().transform(parseJson).pipe(settingsSchema),
  created_at: z.coerce.number(),
  /** By shard: the newest event from before it was created. Absent of shards that are newer. */
  after: z
    .string()
    .default("")
    .transform((ids) => ids.split(" ").filter((id) => id !== "")),
  updated_at: z.coerce.number(),
  /** Another one once its channels were replaced: what the earlier ones answer no longer counts. */
  epoch: z.string().default(""),
});

export interface StoredSubscription extends z.output<typeof storedSchema> {
  readonly id: string;
  /** By number of the channel; empty: it is as new. */
  readonly channels: readonly ChannelState[];
  /** By lane: how many notifications were dropped. */
  readonly dropped: ReadonlyMap<string, number>;
}

/** Null when it cannot be read: another version wrote it. */
export function toStored(id: string, fields: Readonly<Record<string, string>>): StoredSubscription | null {
  const stored = storedSchema.safeParse(fields).data;
  if (!stored) return null;
  const channels = stored.settings.deliver.map(
    (_, n) => channelStateSchema.safeParse(parseJson(fields[`channel:${n}`] ?? "")).data ?? {},
  );
  const dropped = Object.entries(fields).flatMap(([name, count]): [string, number][] =>
    name.startsWith("dropped:") ? [[name.slice("dropped:".length), Number(count)]] : [],
  );
  return { id, ...stored, channels, dropped: new Map(dropped) };
}

/** Something to tell, in a lane. */
const storedNoticeSchema = z.object({
  kind: noticeSchema,
  agent: z.string(),
  /** When it happened, ms. */
  at: z.number(),
  /** Absent of `no_worker`. */
  delegation: z.string().optional(),
  question: z.string().optional(),
  state: z.string().optional(),
  /** Of a `question` that is not new: why it is told again. */
  reason: askedAgainSchema.optional(),
  /** Which reminder it is, from 1. */
  reminder: z.number().optional(),
  /** Of a question that expired: how many approvals it needed, and how many there were. */
  needed: z.number().optional(),
  given: z.number().optional(),
});
export type Notice = z.infer<typeof storedNoticeSchema>;

export interface StoredNotice extends Notice {
  /** As it is in its lane. */
  readonly text: string;
  /** False: another version wrote it. */
  readonly isReadable: boolean;
}

const UNREADABLE: Notice = { kind: "ended", agent: "", at: 0 };

/** A number, a space, and the rest as JSON. */
export function toNotice(text: string): StoredNotice {
  const { data } = storedNoticeSchema.safeParse(parseJson(text.slice(text.indexOf(" ") + 1)));
  return { ...(data ?? UNREADABLE), text, isReadable: data !== undefined };
}

/** The numbers that channels may have. */
export const CHANNELS: readonly number[] = Array.from(
  { length: LIMITS.subscription_channels.value },
  (_, n) => n,
);

/** What tells of a thing too late to wait. */
const URGENT: readonly NoticeKind[] = ["question_expiring"];

export const isUrgent = (kind: NoticeKind): boolean => URGENT.includes(kind);

/** The lane of a notification. */
export const laneOf = (channel: number, kind: NoticeKind): string => `${channel}${isUrgent(kind) ? "!" : ""}`;
export const channelOf = (lane: string): number => Number.parseInt(lane, 10);
export const ignoresQuiet = (lane: string): boolean => lane.endsWith("!");
export const lanesOf = (channel: number): readonly string[] => [`${channel}`, `${channel}!`];
