/**
 * The notifications of a question that time makes due: it is about to expire, it is escalated, and reminders. Each has a name
 * in one list in Redis, ordered by when it is due. If the question is closed by then, the entry is dropped.
 */
import type { Votes } from "../../schema/votes.ts";
import type { Timely } from "./store.ts";

/** `question_expiring` comes when a tenth of the question's time is left, but within these bounds before its end, ms. */
const SOONEST_MS = 30_000;
const LATEST_MS = 3_600_000;

interface Asked {
  readonly asked_at: number;
  readonly expires_at: number;
}

/** `name`: `<delegation> <question>`. `votes`: null if the question needs one answer. */
export function timelyOf(
  name: string,
  { asked_at, expires_at }: Asked,
  votes: Pick<Votes, "escalate_seconds" | "remind_seconds"> | null,
): Timely[] {
  const life = expires_at - asked_at;
  const lead = Math.min(Math.max(life / 10, SOONEST_MS), LATEST_MS, life / 2);
  const after = (what: string, seconds: number | null | undefined) =>
    seconds == null ? [] : [{ name: `${name} ${what}`, at: Math.round(asked_at + seconds * 1000) }];
  const soon = [...after("escalate", votes?.escalate_seconds), ...after("remind 1", votes?.remind_seconds)];
  return [{ name, at: Math.round(expires_at - lead) }, ...soon.filter(({ at }) => at < expires_at)];
}

export type Due =
  | { readonly what: "expiring" | "escalate" }
  | { readonly what: "remind"; readonly n: number };

export function parseTimely(name: string): { delegation: string; question: string; due: Due } {
  const [delegation = "", question = "", what, n] = name.split(" ");
  const due: Due =
    what === "remind" ? { what, n: Number(n) } : { what: what === "escalate" ? what : "expiring" };
  return { delegation, question, due };
}
