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
  /** Since when its tries fail, ms; absent: the last one succeeded. */
  since: z.number().optional(),
  /** Why. */
  problem: z.string().optional(),
  paused: z.boolean().optional(),
  /** Whether the broker made the last try fail, not the receiver. */
  ours: z.boolean().optional(),
  /** How often the receiver refused the first waiting notification. */
  refusals: z.number().optional(),
  delivered_at: z.number().optional(),
});
export type ChannelState = z.infer<typeof channelStateSchema>;

/** A request with its defaults filled in. */
const settingsSchema = subscriptionRequestSchema;
export type Settings = z.output<typeof settingsSchema>;

const storedSchema = z.object({
  owner: z.string(),
  /** Identifies the token of its owner (`Tokens.holderOf`). */
  token: z.string(),
  settings: z.string().transform(parseJson).pipe(settingsSchema),
  created_at: z.coerce.number(),
  /** By shard: the newest event before it was created. Shards that were added later have none. */
  after: z
    .string()
    .default("")
    .transform((ids) => ids.split(" ").filter((id) => id !== "")),
  updated_at: z.coerce.number(),
  /** Changes when its channels are replaced: the links that were sent before answer nothing any more. */
  epoch: z.string().default(""),
});

export interface StoredSubscription extends z.output<typeof storedSchema> {
  readonly id: string;
  /** By number of the channel; empty: it has sent nothing yet. */
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

/** A notification in a lane, before it is put into words. */
const storedNoticeSchema = z.object({
  kind: noticeSchema,
  agent: z.string(),
  /** When it happened, ms. */
  at: z.number(),
  /** Absent for `no_worker`. */
  delegation: z.string().optional(),
  question: z.string().optional(),
  state: z.string().optional(),
  /** Of a `question` that is not new: why its people are notified again. */
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

/** These come too late if they wait for the end of quiet hours. */
const URGENT: readonly NoticeKind[] = ["question_expiring"];

export const isUrgent = (kind: NoticeKind): boolean => URGENT.includes(kind);

/** The lane of a notification. */
export const laneOf = (channel: number, kind: NoticeKind): string => `${channel}${isUrgent(kind) ? "!" : ""}`;
export const channelOf = (lane: string): number => Number.parseInt(lane, 10);
export const ignoresQuiet = (lane: string): boolean => lane.endsWith("!");
export const lanesOf = (channel: number): readonly string[] => [`${channel}`, `${channel}!`];
