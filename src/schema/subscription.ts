/**
 * Subscriptions: what a person is notified of outside the console, and by which channels. Limit: a channel's secrets are
 * never shown again.
 */
import * as z from "zod";
import { secretSchema } from "./callback.ts";
import { stateSchema } from "./delegation.ts";
import { LIMITS } from "./limits.ts";
import { askedAgainSchema, channelKindSchema, noticeSchema } from "./notice.ts";
import {
  agentNameSchema,
  httpUrlSchema,
  instantSchema,
  principalPatternSchema,
  principalSchema,
} from "./values.ts";
import { questionVotesSchema } from "./votes.ts";

export const SUBSCRIPTION_ID = /^sub_[0-9a-z]{26}$/;
/** The id of a subscription, `sub_…`. */
export const subscriptionIdSchema = z.string().regex(SUBSCRIPTION_ID, "not a subscription id");

const TOKEN = z.string().regex(/^[\x21-\x7e]{1,512}$/, "1 to 512 printable ASCII characters without spaces");
const after = {
  /**
   * Sends a notification only this many seconds later, and only if it still matters: the question is open, or the work still
   * waits. Up to 86400 (a day). Default 0.
   */
  after_seconds: z.int().min(0).max(86_400).default(0),
};

/** A POST with the notification as JSON, signed by the Standard Webhooks scheme. */
const webhookSchema = z.strictObject({
  /** A POST for programs. */
  kind: z.literal("webhook"),
  /** Receives the POST; http or https. */
  url: httpUrlSchema,
  /** Signs every call (Standard Webhooks): `whsec_` and 24 to 64 bytes in base64. Never shown. */
  secret: secretSchema.optional(),
  /** Sent as a bearer token. Never shown. */
  token: TOKEN.optional(),
  ...after,
});
/** An incoming webhook of Slack, or of what is compatible with it (Mattermost, Rocket.Chat, Discord with `/slack`). */
const slackSchema = z.strictObject({
  /** An incoming webhook of Slack, or of what is compatible with it. */
  kind: z.literal("slack"),
  /** The URL of the incoming webhook. It is the secret: only its host is shown. */
  url: httpUrlSchema,
  ...after,
});
const hasTopic = (url: string): boolean =>
  URL.canParse(url) && /^\/(?:[^/]+\/)*[-_A-Za-z0-9]{1,64}$/.test(new URL(url).pathname);

/** A topic of ntfy.sh, or of an ntfy server of your own. */
const ntfySchema = z.strictObject({
  /** A topic of ntfy. */
  kind: z.literal("ntfy"),
  /** The topic, for example `https://ntfy.sh/my-secret-topic`. Whoever knows it can read along. */
  url: httpUrlSchema.refine(hasTopic, { error: "must end with the topic: https://ntfy.sh/my-topic" }),
  /** An access token of ntfy. Never shown. */
  token: TOKEN.optional(),
  ...after,
});
/** A mail; the broker needs a mail server (`ERRAND_SMTP_URL`). */
const emailSchema = z.strictObject({
  /** A mail. */
  kind: z.literal("email"),
  /** The address. */
  to: z.email().max(254),
  ...after,
});
/** A browser that asked to be notified; the console creates it. */
const webPushSchema = z.strictObject({
  /** A browser. */
  kind: z.literal("web_push"),
  /** The URL of the browser's push service. Only its host is shown. */
  url: httpUrlSchema,
  /** The browser's keys, in base64url. Never shown. */
  keys: z.strictObject({
    /** Its public key. */
    p256dh: z.string().regex(/^[A-Za-z0-9_-]{87}=?$/, "must be 65 bytes in base64url"),
    /** Its secret. */
    auth: z.string().regex(/^[A-Za-z0-9_-]{22}(?:==)?$/, "must be 16 bytes in base64url"),
  }),
  ...after,
});
/** How a notification is delivered. */
export const channelSchema = z.discriminatedUnion("kind", [
  webhookSchema,
  slackSchema,
  ntfySchema,
  emailSchema,
  webPushSchema,
]);
export type Channel = z.output<typeof channelSchema>;

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
/** Times of the day at which nothing is sent. What comes in between waits; a question about to expire does not. */
const quietSchema = z.strictObject({
  /** When they begin, for example `22:00`. */
  from: z.string().regex(TIME, "must be a time of the day, for example 22:00"),
  /** When they end, for example `07:00`; the next day if that is earlier. */
  to: z.string().regex(TIME, "must be a time of the day, for example 07:00"),
  /** The IANA name of the time zone, for example `Europe/Berlin`. Default `UTC`. */
  time_zone: z.string().min(1).max(64).default("UTC"),
});

const filterSchema = z.strictObject({
  /** Only of these agents. Default: all. */
  agents: z.array(agentNameSchema).min(1).max(50).optional(),
  /**
   * Only what these principals delegated: `caller:ana`, `caller:*`, `*`. Default: what you delegated, and of questions
   * everything that you may answer.
   */
  delegators: z.array(principalPatternSchema).min(1).max(50).optional(),
  /** Of `ended`: only with these final states. Default: all. */
  states: z.array(stateSchema).min(1).max(4).optional(),
});

const settings = {
  /** For people, up to 200 characters. */
  name: z.string().min(1).max(200),
  /** What you are notified of. */
  events: z.array(noticeSchema).min(1).max(noticeSchema.options.length),
  /** Which of these events. Default: all that concern you. */
  filter: filterSchema,
  /** By which channels, 1 to 5. Each has its own order, retries and state. */
  deliver: z.array(channelSchema).min(1).max(LIMITS.subscription_channels.value),
  /** If more notifications than this are due for one channel, they are sent as one; 1 to 100. */
  digest_above: z.int().min(1).max(100),
  /** Times of the day at which nothing is sent; null: none. */
  quiet: quietSchema.nullable(),
  /** Of `no_worker`: at most one notification for each agent in this many seconds, 10 to 86400. */
  every_seconds: z.int().min(10).max(86_400),
};

/** A new subscription: at least `events` and `deliver`. */
export const subscriptionRequestSchema = z.strictObject({
  ...settings,
  name: settings.name.optional(),
  filter: settings.filter.default({}),
  digest_above: settings.digest_above.default(10),
  quiet: settings.quiet.default(null),
  every_seconds: settings.every_seconds.default(300),
});
export type SubscriptionRequest = z.output<typeof subscriptionRequestSchema>;
export type SubscriptionInput = z.input<typeof subscriptionRequestSchema>;

/** Changes: omitted settings stay; `filter` and `deliver` are replaced whole. */
export const subscriptionPatchSchema = z.strictObject({
  name: settings.name.nullable().optional(),
  events: settings.events.optional(),
  filter: settings.filter.optional(),
  deliver: settings.deliver.optional(),
  digest_above: settings.digest_above.optional(),
  quiet: settings.quiet.optional(),
  every_seconds: settings.every_seconds.optional(),
});
export type SubscriptionPatch = z.output<typeof subscriptionPatchSchema>;
/** The settings of a subscription to change. */
export type SubscriptionPatchInput = z.input<typeof subscriptionPatchSchema>;

/** A channel of a subscription, with its state and without its secrets. */
const shownChannelSchema = z.strictObject({
  /** Which kind of channel. */
  kind: channelKindSchema,
  /** Where it goes: a URL, or only its host where the URL is a secret, or a mail address. */
  to: z.string(),
  /** How long a notification waits before it is sent. */
  after_seconds: z.int(),
  /** `ok`; `failing`: the last try failed and is repeated; `paused`: it failed for a day, or is gone, and gets nothing. */
  state: z.enum(["ok", "failing", "paused"]),
  /** Why it is failing or paused; null: nothing is wrong. */
  problem: z
    .strictObject({
      /** What happened. */
      message: z.string(),
      /** Since when. */
      since: instantSchema,
    })
    .nullable(),
  /** How many notifications wait. */
  waiting: z.int(),
  /** How many were dropped since it was created, because too many waited. */
  dropped: z.int(),
  /** When it last delivered one; null: never. */
  delivered_at: instantSchema.nullable(),
});

/** What somebody is notified of, and how. */
export const subscriptionSchema = z.strictObject({
  /** Identifies the subscription. */
  id: subscriptionIdSchema,
  /** For people; null: none. */
  name: settings.name.nullable(),
  /** Who created it, and who is notified. */
  owner: principalSchema,
  /** What its owner is notified of. */
  events: z.array(noticeSchema),
  /** Which of these events. */
  filter: filterSchema,
  /** By which channels, in the order in which they were given. */
  deliver: z.array(shownChannelSchema),
  /** If more notifications than this are due for one channel, they are sent as one. */
  digest_above: z.int(),
  /** Times of the day at which nothing is sent; null: none. */
  quiet: quietSchema.nullable(),
  /** Of `no_worker`: at most one for each agent in this many seconds. */
  every_seconds: z.int(),
  /** When it was created. */
  created_at: instantSchema,
  /** When its settings were last changed. */
  updated_at: instantSchema,
});
export type Subscription = z.infer<typeof subscriptionSchema>;

/** A page of subscriptions. */
export const subscriptionPageSchema = z.strictObject({
  /** The subscriptions, oldest first. */
  subscriptions: z.array(subscriptionSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});

/** The outcome of a test: one for each channel, in their order. */
export const subscriptionTestSchema = z.strictObject({
  /** For each channel whether the test was delivered. */
  deliver: z.array(
    z.strictObject({
      /** Which kind of channel. */
      kind: channelKindSchema,
      /** Whether the receiver accepted it. */
      delivered: z.boolean(),
      /** Why not; null: it was delivered. */
      problem: z.string().nullable(),
    }),
  ),
});
export type SubscriptionTest = z.infer<typeof subscriptionTestSchema>;

/** For the channel `web_push`. */
export const webPushKeySchema = z.strictObject({
  /** The broker's public key, in base64url: `applicationServerKey` of a browser's push subscription. */
  key: z.string(),
});

/** What a webhook gets: one notification, or several as a digest. */
export const notificationSchema = z.strictObject({
  /** Identifies the notification; a repeat has the same id. */
  id: z.string(),
  /** The subscription. */
  subscription_id: subscriptionIdSchema,
  /** `digest`: several at once; `test`: somebody tests the subscription. */
  type: z.union([noticeSchema, z.enum(["digest", "test"])]),
  /** When it happened; of a digest the newest of them. */
  at: instantSchema,
  /** In one line. */
  title: z.string(),
  /** The rest in words; empty: there is no more to say. */
  text: z.string(),
  /** Where a person looks at it or answers; null: `no_link` says why there is none. */
  link: z.string().nullable(),
  /** Why there is no link; absent: there is one. */
  no_link: z.string().optional(),
  /** The agent; absent in a digest. */
  agent: agentNameSchema.optional(),
  /** The delegation; absent in a digest and where work waits. */
  delegation_id: z.string().optional(),
  /** The question. */
  interrupt_id: z.string().optional(),
  /** Of `question`: why you are notified again, or only now; absent: the agent has just asked. */
  reason: askedAgainSchema.optional(),
  /** Which reminder it is, from 1. */
  reminder: z.int().min(1).optional(),
  /** The approvals of a question that needs several, where the agent's `notify.contents` has the channel. */
  votes: questionVotesSchema.pick({ needed: true, given: true }).optional(),
  /** Of `ended`: how. */
  state: stateSchema.optional(),
  /** Of `ended`: the code of the failure. */
  code: z.string().optional(),
  /** Of `no_worker`: how many delegations wait. */
  waiting: z.int().optional(),
  /** Of a digest: how many there are of each kind. */
  counts: z.partialRecord(noticeSchema, z.int()).optional(),
});
/** What a webhook of a subscription gets. */
export type Notification = z.infer<typeof notificationSchema>;
