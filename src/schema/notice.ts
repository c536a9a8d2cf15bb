/** What notifications are about, and the kinds of channels that deliver them. Limit: names only. */
import * as z from "zod";
import { instantSchema, principalSchema } from "./values.ts";

/**
 * What a notification is about. `question`: a question that you may answer was asked. `question_expiring`: it is still open
 * shortly before its deadline. `question_expired`: nobody answered it in time. `ended`: a delegation ended. `no_worker`:
 * work waits for an agent for which nobody polls.
 */
export const noticeSchema = z.enum([
  "question",
  "question_expiring",
  "question_expired",
  "ended",
  "no_worker",
]);
export type NoticeKind = z.infer<typeof noticeSchema>;

/**
 * Why somebody is notified of a question that is not new. `escalated`: nobody answered it for some time, so their approval
 * counts now. `reminder`: they have not approved it yet. `voided`: their approval no longer counts, because somebody approved something
 * else, such as other arguments.
 */
export const askedAgainSchema = z.enum(["escalated", "reminder", "voided"]);
export type AskedAgain = z.infer<typeof askedAgainSchema>;

/** How notifications leave the broker. */
export const channelKindSchema = z.enum(["webhook", "slack", "ntfy", "email", "web_push"]);
export type ChannelKind = z.infer<typeof channelKindSchema>;

/**
 * What notifications about the agent's questions may do outside the broker. Only the operator changes it.
 */
export const agentNotifySchema = z.strictObject({
  /** The kinds of channels by which what is asked may leave the broker; the others only say that the agent asks, and until when. Default: none. */
  contents: z.array(channelKindSchema).max(5).default([]),
  /**
   * What a link in a notification leads to. `answer`: the question, and whoever holds the link answers it in the name of the
   * person that was notified; `sign_in`: the console, which asks for a token. Default `answer`.
   */
  links: z.enum(["answer", "sign_in"]).default("answer"),
  /** What a button in a notification may do at once, without a page. `approve` includes deny. Default `none`. */
  one_tap: z.enum(["none", "deny", "approve"]).default("none"),
});
/** Changes to it: what is left out stays, and null resets. */
export const agentNotifyPatchSchema = z.strictObject({
  /** The kinds of channels by which what is asked may leave the broker. */
  contents: agentNotifySchema.shape.contents.unwrap().nullish(),
  /** What a link in a notification leads to. */
  links: agentNotifySchema.shape.links.unwrap().nullish(),
  /** What a button in a notification may do at once, without a page. */
  one_tap: agentNotifySchema.shape.one_tap.unwrap().nullish(),
});
export type AgentNotify = z.output<typeof agentNotifySchema>;

/** Somebody was notified of a question. */
export const toldSchema = z.strictObject({
  /** Who. */
  person: principalSchema,
  /** By which kind of channel. */
  channel: channelKindSchema,
  /** When the receiver accepted it. */
  at: instantSchema,
});
