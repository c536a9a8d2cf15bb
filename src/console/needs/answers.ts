/**
 * Answers on their way: each waits a few seconds, in which it can be taken back, and is then sent. When the page closes
 * meanwhile, it is sent at once. The outcome is shown in the place of the question for a while.
 */
import { ErrandApiError } from "../../client/errors.ts";
import { randomKey } from "../../client/random-key.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { now } from "../data/clock.ts";
import type { Connection } from "../data/connection.ts";
import { listedOf, refresh, show } from "../data/delegations.ts";
import { asks } from "../data/listed.ts";
import { onEvents } from "../data/stream.ts";
import { checkSession, isCurrent, session, type Unfinished, unfinished } from "../session/session.ts";
import { isUncertain } from "../ui/problem.tsx";
import { decided, nameOf } from "../ui/words.ts";
import { ballotKey, isDenial, votersText } from "./ballot.ts";
import { forgetAsked, lastAsked } from "./last-asked.ts";
import { failures, note, notes, type Pending, pending, unsent } from "./outcomes.ts";
import { whoAnswered } from "./who-answered.ts";

const UNDO_MS = 4_000;

const timers = new Map<string, ReturnType<typeof setTimeout>>();
const sending = new Map<string, Promise<void>>();

export function answerLater(one: Omit<Pending, "connection" | "key" | "sentAt">): void {
  const { id } = one.interrupt;
  const connection = session.value?.connection;
  // A second click may come before the form is inert.
  if (!connection || pending.get(id)) return;
  failures.delete(id);
  unsent.delete(id);
  arm(id, { ...one, connection, key: randomKey() });
}

function arm(id: string, one: Omit<Pending, "sentAt">): void {
  pending.set(id, { ...one, sentAt: performance.now() + UNDO_MS });
  timers.set(
    id,
    setTimeout(() => void send(id), UNDO_MS),
  );
}

/** Stops the clocks of the answers that can still be taken back; the returned function starts them anew. */
function hold(): () => void {
  const held = waitingIds();
  for (const id of held) clearTimeout(timers.get(id));
  return () => {
    for (const id of held) {
      const one = pending.get(id);
      if (one && one.sentAt !== null) arm(id, one);
    }
  };
}

/** The answers that can still be taken back. */
export const waitingIds = (): string[] =>
  pending.entries().flatMap(([id, { sentAt }]) => (sentAt === null ? [] : [id]));

export function undo(id: string): void {
  if (pending.get(id)?.sentAt === null) return;
  clearTimeout(timers.get(id));
  timers.delete(id);
  pending.delete(id);
}

/** Resolves when the broker has it or has refused it. */
export function send(id: string): Promise<void> {
  const before = sending.get(id);
  const one = pending.get(id);
  if (before || !one) return before ?? Promise.resolve();
  clearTimeout(timers.get(id));
  timers.delete(id);
  pending.set(id, { ...one, sentAt: null });
  const sent = sendNow(one).finally(() => sending.delete(id));
  sending.set(id, sent);
  return sent;
}

async function sendNow(one: Pending): Promise<void> {
  const { listed, interrupt, connection } = one;
  const { id } = interrupt;
  // The next session must not show it.
  const isOver = () => !isCurrent(connection);
  try {
    refuseOther(one);
    const answered = await connection.delegator.answer(listed.id, id, one.answer, {
      idempotencyKey: one.key,
    });
    if (isOver()) return;
    // A vote leaves it open, and then the question itself says so.
    const isOpen = answered.interrupt?.id === id;
    const say = (text: string) => note(id, { listed, text, at: new Date(now.peek()).toISOString() });
    if (!isOpen) say(one.done);
    show(answered);
    await one.then?.(connection).catch((error: unknown) => {
      checkSession(error);
      if (isOver()) return;
      const lost = isUncertain(error) ? "it is not known whether the rule was made" : "no rule was made";
      const text = `Approved, but ${lost}. ${error instanceof Error ? error.message : String(error)}`;
      if (isOpen) failures.set(id, new Error(text));
      else say(text);
    });
  } catch (error) {
    checkSession(error);
    if (isOver()) return;
    if (error instanceof ErrandApiError && error.code === "interrupt_not_open") {
      await noteOther(connection, one);
    } else {
      failures.set(id, error);
      if (isUncertain(error)) unsent.set(id, one);
    }
  }
  pending.delete(id);
}

/** Throws if others have approved something else since the reader looked, which this approval would void. */
function refuseOther({ listed, interrupt: seen, answer }: Pending): void {
  const current = listedOf(listed.id)?.peek().interrupt;
  if (current?.id !== seen.id || isDenial(answer) || ballotKey(current) === ballotKey(seen)) return;
  const who = votersText(current.votes?.given ?? []);
  throw new Error(`Not sent: ${who} approved something else meanwhile. Look again, then decide.`);
}

/** Notes who answered first. */
export async function noteOther(connection: Connection, { listed, interrupt }: Pending): Promise<void> {
  const delegation = await connection.delegator.get(listed.id).catch(() => null);
  const text = delegation === null ? "This question is no longer open" : whoAnswered(delegation, interrupt);
  note(interrupt.id, { listed, text, at: delegation?.updated_at ?? new Date(now.peek()).toISOString() });
  await refresh(connection, listed.id);
}

/** Notes the answers that other people give while their questions are in view. */
export function watchAnswers(): () => void {
  const quiet = onEvents((events) => {
    for (const event of events ?? []) {
      if (event.status === "answered" || hasExpired(event)) noteEvent(event);
      forgetAsked(event, listedOf(event.delegation_id)?.value);
    }
    // Of what ended while events were lost, no event tells.
    if (!events) for (const id of lastAsked.keys()) if (!listedOf(id)) lastAsked.delete(id);
  });
  const leave = () => Promise.all(pending.keys().map(send));
  addEventListener("pagehide", leave);
  // On a phone, a page that is frozen may never run again.
  document.addEventListener("freeze", leave);
  const answers: Unfinished = { finish: leave, hold, settle: () => Promise.all(sending.values()) };
  unfinished.add(answers);
  return () => {
    quiet();
    removeEventListener("pagehide", leave);
    document.removeEventListener("freeze", leave);
    unfinished.delete(answers);
    // The session has ended, and the next one must not send these answers.
    for (const timer of timers.values()) clearTimeout(timer);
    for (const map of [timers, lastAsked, pending, failures, unsent, notes]) map.clear();
  };
}

/** The clock of this page does not say it: it may be behind that of the broker. */
const hasExpired = (event: DelegationEvent): boolean =>
  event.type === "DELEGATION_FAILED" && event.error.code === "interrupt_expired";

function noteEvent(event: DelegationEvent): void {
  const asked = lastAsked.get(event.delegation_id);
  const id = asked?.interrupt?.id;
  const listed = listedOf(event.delegation_id)?.value;
  if (!asked || id === undefined || !listed || asks(listed.state) || pending.get(id) || notes.get(id)) return;
  note(id, {
    listed: asked,
    text:
      event.status === "answered"
        ? `${nameOf(event.by)} ${decided(event.decision)} this`
        : "Nobody answered in time",
    at: event.at,
  });
}
