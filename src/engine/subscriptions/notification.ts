/**
 * Puts a notification into words. By default it says which agent, and that it asks or how it ended; what is asked leaves the
 * broker only by the channels that the agent's settings name (`notify.contents`).
 */
import { createHash } from "node:crypto";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { textOf } from "../../schema/a2a.ts";
import { stateSchema } from "../../schema/delegation.ts";
import type { AgentNotify, AskedAgain, NoticeKind } from "../../schema/notice.ts";
import type { Channel, Notification } from "../../schema/subscription.ts";
import { truncate } from "../../schema/text.ts";
import { notifiedPeople } from "../../schema/told-text.ts";
import { toInstant } from "../../schema/values.ts";
import { votesText } from "../../schema/vote-text.ts";
import { votedAnswersText, votedOtherwise } from "../../schema/voted-answers.ts";
import { canSee, mayControl, type Principal, toPrincipal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { openInterrupt, toDelegation } from "../delegations/parse.ts";
import { digestOf, hasOtherVotes, linkAnswerOf, ONE_TAP } from "../links/fitting.ts";
import type { Link } from "../links/store.ts";
import { countsAt, hasApproved, votedOn, votesNow } from "./approvers.ts";
import type { Composed } from "./composed.ts";
import { linesOf } from "./lines.ts";
import { stillWaiting } from "./no-workers.ts";
import type { StoredNotice, StoredSubscription } from "./stored-subscription.ts";
import { readTold } from "./told.ts";

type Needs = Pick<
  Broker,
  "agents" | "bulk" | "clock" | "linkBase" | "links" | "presence" | "redis" | "shards"
>;

interface Linked {
  readonly link: string | null;
  readonly no_link?: string;
}

const NO_LINK = "The broker has no URL that a phone or another machine reaches (ERRAND_PUBLIC_URL).";
/** In bytes of JSON: a browser's push service takes at most 4096 bytes, with all other members and encrypted. */
const MAX_TEXT = 1_500;

/** A link to a place in the console; null, with the reason, if nobody could open it. */
function linkTo({ linkBase }: Pick<Needs, "linkBase">, fragment: string): Linked {
  return linkBase === null ? { link: null, no_link: NO_LINK } : { link: `${linkBase}/${fragment}` };
}

/** Derived from what it is about, so that each try, at any gateway, has the same id. */
function idOf({ id }: StoredSubscription, notices: readonly StoredNotice[]): string {
  const of = notices.map(({ kind, agent, delegation, question, at, reason, reminder = 0 }) => [
    ...[kind, agent, delegation, question, at],
    ...(reason === undefined ? [] : [reason, reminder]),
  ]);
  return `ntf_${createHash("sha256")
    .update(JSON.stringify([id, of]))
    .digest("base64url")
    .slice(0, 27)}`;
}

/** Null: it no longer matters, because the question is answered or the delegation is gone. */
export async function toNotification(
  broker: Needs,
  subscription: StoredSubscription,
  channel: Channel,
  notice: StoredNotice,
): Promise<Composed | null> {
  const { kind, agent, delegation, question, state, at, reason, reminder } = notice;
  const head = {
    id: idOf(subscription, [notice]),
    subscription_id: subscription.id,
    type: kind,
    at: toInstant(at),
  };
  if (kind === "no_worker" || delegation === undefined) {
    const waiting = await stillWaiting(broker, agent);
    if (waiting === 0) return null;
    const many = waiting === 1 ? "1 delegation waits" : `${waiting} delegations wait`;
    return plain({
      ...head,
      title: `Nobody polls for ${agent}`,
      text: `${many} for a worker.`,
      ...linkTo(broker, `#/agents/${agent}`),
      ...{ agent, waiting },
    });
  }
  const record = await matteringRecord(broker, subscription, notice);
  if (!record) return null;
  const asks = isAsking(kind);
  // Not from the cache: the operator may just have forbidden a channel.
  const notify = (await broker.agents.read(agent))?.spec.notify;
  const shows = notify?.contents.includes(channel.kind) === true;
  const code = codeOf(record);
  const votes = asks && shows ? toDelegation(record).interrupt?.votes : undefined;
  const notification = {
    ...head,
    title: titleOf(notice, code),
    text: linesOf([
      votes && (votes.needed > 1 || votes.given.length > 0) ? `${votesText(votes)}.` : "",
      kind === "question_expired" ? await expiredText(broker, notice) : "",
      shows ? contentsOf(record, asks) : "",
      asks ? untilText(record) : "",
    ]),
    ...linkTo(broker, `#/d/${delegation}`),
    ...{ agent, delegation_id: delegation },
    ...(question !== undefined && { interrupt_id: question }),
    ...(reason !== undefined && { reason }),
    ...(reminder !== undefined && { reminder }),
    ...(votes && { votes: { needed: votes.needed, given: votes.given } }),
    ...(kind === "ended" && { state: stateSchema.parse(state), ...(code !== null && { code }) }),
  };
  if (!asks || notify?.links !== "answer") return plain(notification);
  return withAnswerLink(broker, subscription, channel, record, { notification, oneTap: notify.one_tap });
}

/** Until when the question waits: no channel needs permission for that, because it says nothing of what is asked. */
function untilText(record: StoredDelegation): string {
  const { expires_at } = toDelegation(record).interrupt ?? {};
  return expires_at ? `It waits for an answer until ${wholeSeconds(expires_at)}.` : "";
}

/** Who was notified of the question that expired, and how many approved it. */
async function expiredText(
  { redis }: Needs,
  { delegation = "", question = "", needed, given = 0 }: StoredNotice,
): Promise<string> {
  const told = await readTold(redis, delegation, question);
  const people = notifiedPeople(told).map(({ person, by }) => `${person} ${waysText(by)}`);
  return linesOf([
    needed === undefined ? "" : `It needed ${count(needed, "approval")}, and had ${given}.`,
    ...(told.length === 0 ? ["Nobody was notified of it."] : ["Notified of it:", ...people]),
  ]);
}

/** `by ntfy at 2026-11-29T08:34:43Z, by email at …`. */
const waysText = (by: ReadonlyMap<string, string>): string =>
  [...by].map(([channel, at]) => `by ${channel.replace("_", " ")} at ${wholeSeconds(at)}`).join(", ");

const wholeSeconds = (at: string): string => at.replace(/\.\d+Z$/, "Z");

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;

const plain = (notification: Notification): Composed => ({ notification, buttons: [], buttonUrl: "" });

interface Asking {
  readonly notification: Notification;
  readonly oneTap: AgentNotify["one_tap"];
}

/** The link leads to the question itself, and answers it in the name of the subscription's owner. */
async function withAnswerLink(
  { linkBase, links }: Needs,
  { id, owner, epoch }: StoredSubscription,
  { kind }: Channel,
  record: StoredDelegation,
  { notification, oneTap }: Asking,
): Promise<Composed> {
  const { interrupt } = toDelegation(record);
  const way = interrupt && linkAnswerOf(interrupt);
  const mayAnswer = mayControl(toPrincipal(owner), record);
  if (!interrupt || linkBase === null || !mayAnswer || way === null || way === "sign_in")
    return plain(notification);
  const mint = (may: Link["may"]) =>
    links.mint(
      {
        ...{ person: owner, subscription: id, epoch, channel: kind, may, digest: digestOf(interrupt) },
        ...{ delegation: record.id, question: interrupt.id },
      },
      Date.parse(interrupt.expires_at),
    );
  const may = way === "decision" ? ONE_TAP[oneTap] : [];
  const decisions = hasOtherVotes(interrupt) ? may.filter((decision) => decision !== "approve") : may;
  const buttons = await Promise.all(
    decisions.map(async (decision) => ({ decision, token: await mint(decision) })),
  );
  const { no_link: _, ...rest } = notification;
  return {
    notification: { ...rest, link: `${linkBase}/answer#${await mint("answer")}` },
    buttons,
    buttonUrl: `${linkBase}/v1/links/answer`,
  };
}

const isAsking = (kind: NoticeKind): boolean => kind === "question" || kind === "question_expiring";

/** Whether it is still worth sending: the question is open, the work waits, or the delegation still exists. */
export async function stillMatters(
  broker: Needs,
  subscription: StoredSubscription,
  notice: StoredNotice,
): Promise<boolean> {
  if (notice.kind === "no_worker") return (await stillWaiting(broker, notice.agent)) > 0;
  return (await matteringRecord(broker, subscription, notice)) !== null;
}

/** The delegation of a notification that still matters. Null also if the owner may not see it, such as one of an earlier agent of the same name. */
async function matteringRecord(
  broker: Needs,
  { owner }: StoredSubscription,
  { kind, delegation = "", question, at }: StoredNotice,
): Promise<StoredDelegation | null> {
  const principal = toPrincipal(owner);
  const record = await readRecord(broker.redis, broker.shards, delegation);
  if (!record || !(await canSee(broker, principal, record))) return null;
  return isAsking(kind) && !(await stillAsks(broker, principal, record, question, at)) ? null : record;
}

/** Whether the question is open and, by the agent's present `votes`, still needs this person. */
async function stillAsks(
  broker: Needs,
  principal: Principal,
  record: StoredDelegation,
  question: string | undefined,
  at: number,
): Promise<boolean> {
  const open = openInterrupt(record);
  if (open?.id !== question || !open) return false;
  if (hasApproved(record, principal) && (await votesNow(broker, record.get("target")))) return false;
  const voted = await votedOn(broker, record, open);
  return !voted || countsAt(voted, principal, at);
}

const ASKED_AGAIN: Readonly<Record<AskedAgain, (agent: string) => string>> = {
  escalated: (agent) => `${agent} asks, and waits for approval; by now yours counts, too`,
  reminder: (agent) => `${agent} still waits for your approval`,
  voided: (agent) =>
    `${agent} asks again: somebody approved something else, and your approval no longer counts`,
};

function titleOf({ kind, agent, state, reason, needed = 1 }: StoredNotice, code: string | null): string {
  switch (kind) {
    case "question":
      return reason ? ASKED_AGAIN[reason](agent) : `${agent} asks`;
    case "question_expiring":
      return `${agent} still waits for an answer, and its question is about to expire`;
    case "question_expired":
      return needed > 1
        ? `Too few people approved what ${agent} asked, so its work failed`
        : `Nobody answered ${agent}, so its work failed`;
    case "no_worker":
      return `Nobody polls for ${agent}`;
    case "ended":
      return state === "failed" && code !== null ? `${agent} failed: ${code}` : `${agent}: ${state}`;
  }
}

function codeOf(record: StoredDelegation): string | null {
  const error: unknown = JSON.parse(record.get("error") ?? "null");
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : null;
}

function cut(text: string): string {
  let shown = truncate(text, MAX_TEXT);
  while (Buffer.byteLength(JSON.stringify(shown)) > MAX_TEXT)
    shown = truncate(shown, Math.floor(shown.length * 0.8));
  return shown.length === text.length ? text : `${shown} …`;
}

/** What is asked, with what people approved instead, or the task that ended. */
function contentsOf(record: StoredDelegation, asks: boolean): string {
  const { interrupt } = asks ? toDelegation(record) : { interrupt: null };
  const lines = (interrupt?.requests ?? []).flatMap(({ message, action }) => [
    textOf(message),
    ...(action ? [`${action.name} ${JSON.stringify(action.arguments ?? {})}`] : []),
  ]);
  const voted = interrupt && votedOtherwise(interrupt);
  const preview: unknown = JSON.parse(record.get("task_preview"));
  const approved = interrupt && voted ? `Approved so far: ${votedAnswersText(interrupt, voted)}` : "";
  // First, so that it is not what is cut off.
  return cut(asks ? linesOf([approved, ...lines]) : String(preview));
}

/** Several as one. */
export function toDigest(
  broker: Pick<Needs, "linkBase">,
  subscription: StoredSubscription,
  notices: readonly StoredNotice[],
): Composed {
  const counts: Partial<Record<NoticeKind, number>> = {};
  for (const { kind } of notices) counts[kind] = (counts[kind] ?? 0) + 1;
  const agents = [...new Set(notices.map(({ agent }) => agent))];
  const last = notices.at(-1);
  const shown =
    agents.length > 5 ? `${agents.slice(0, 5).join(", ")} and ${agents.length - 5} more` : agents.join(", ");
  const lines = Object.entries(counts).map(([kind, count]) => `${count} × ${kind.replaceAll("_", " ")}`);
  return plain({
    id: idOf(subscription, notices),
    subscription_id: subscription.id,
    type: "digest",
    at: toInstant(last?.at ?? 0),
    title: `${notices.length} notifications: ${shown}`,
    text: lines.join("\n"),
    ...linkTo(broker, "#/needs"),
    counts,
  });
}

/** The notification of a test. */
export const testOf = (
  broker: Pick<Needs, "linkBase">,
  { id, settings: { name } }: StoredSubscription,
  now: number,
  nonce: string,
): Composed =>
  plain({
    id: `ntf_${id.slice(4)}_test_${nonce}`,
    subscription_id: id,
    type: "test",
    at: toInstant(now),
    title: "Errand can reach you here",
    text: `Somebody tested the subscription ${name ? `"${name}" (${id})` : id}.`,
    ...linkTo(broker, "#/needs"),
  });
