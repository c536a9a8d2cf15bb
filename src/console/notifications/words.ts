/** Kinds of notifications and channels, in words. */
import type { ChannelKind, NoticeKind } from "../../schema/notice.ts";

/** As choices in a form. */
export const NOTICE_WORDS: Readonly<Record<NoticeKind, string>> = {
  question: "A question that I may answer",
  question_expiring: "One that is about to expire",
  question_expired: "One that nobody answered in time",
  ended: "The end of what I delegated",
  no_worker: "Work that waits while nobody polls",
};

/** In a list of them, in a few words. */
export const SHORT_NOTICE_WORDS: Readonly<Record<NoticeKind, string>> = {
  question: "questions",
  question_expiring: "questions about to expire",
  question_expired: "expired questions",
  ended: "ends",
  no_worker: "work without a worker",
};

export const CHANNEL_WORDS: Readonly<Record<ChannelKind, string>> = {
  web_push: "browser",
  ntfy: "ntfy",
  slack: "Slack",
  email: "mail",
  webhook: "webhook",
};
