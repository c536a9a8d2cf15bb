/**
 * Answers on their way: each waits a few seconds, in which it can be taken back, and is then sent. When the page closes
 * meanwhile, it is sent at once. The outcome is shown in the place of the question for a while.
 */
import type { Answer, Answers } from "../../client/answer.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import type { Connection } from "../data/connection.ts";
import { asks, type Flight } from "../data/flight.ts";
import { flightOf, refresh, show } from "../data/flights.ts";
import { onEvents } from "../data/stream.ts";
import { beforeSignOut, checkSession, session } from "../session/session.ts";
import { nameOf } from "../ui/words.ts";
import { SignalMap } from "./signal-map.ts";

const UNDO_MS = 4_000;
const NOTE_MS = 8_000;

export interface Pending {
  readonly flight: Flight;
  readonly interrupt: Interrupt;
  /** "Approved", for the reader. */
  readonly done: string;
  readonly answer: Answer | Answers;
  /** The time at which it is sent, by the clock of `performance`. */
  readonly sentAt: number;
}

/** The outcome of a question that is no longer open. */
export interface Note {
  readonly flight: Flight;
  readonly text: string;
  readonly at: string;
}

/** By the question's id. */
export const pending = new SignalMap<Pending>();
export const notes = new SignalMap<Note>();
export const failures = new SignalMap<unknown>();
const timers = new Map<string, ReturnType<typeof setTimeout>>();

export function answerLater(one: Omit<Pending, "sentAt">): void {
  const { id } = one.interrupt;
  failures.delete(id);
  pending.set(id, { ...one, sentAt: performance.now() + UNDO_MS });
  timers.set(
    id,
    setTimeout(() => void send(id), UNDO_MS),
  );
}

export function undo(id: string): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
  pending.delete(id);
}

async function send(id: string): Promise<void> {
  clearTimeout(timers.get(id));
  const one = pending.get(id);
  const connection = session.value?.connection;
  if (!one || !connection || !timers.delete(id)) return;
  try {
    const answered = await connection.delegator.answer(one.flight.id, id, one.answer);
    note(id, { flight: one.flight, text: one.done, at: new Date().toISOString() });
    show(answered);
  } catch (error) {
    checkSession(error);
    if (error instanceof ErrandApiError && error.code === "interrupt_not_open") {
      await noteOther(connection, one);
    } else failures.set(id, error);
  }
  pending.delete(id);
}

/** Notes who answered first. */
async function noteOther(connection: Connection, { flight, interrupt }: Pending): Promise<void> {
  const delegation = await connection.delegator.get(flight.id).catch(() => null);
  const text = delegation === null ? "This question is no longer open" : whoAnswered(delegation, interrupt);
  note(interrupt.id, { flight, text, at: delegation?.updated_at ?? new Date().toISOString() });
  await refresh(connection, flight.id);
}

function whoAnswered({ history, state }: Delegation, { id }: Interrupt): string {
  const answer = history.findLast(
    ({ metadata }) => metadata?.interrupt_id === id && metadata.by !== undefined,
  );
  if (!answer) return `This question is no longer open: the delegation is ${state.replaceAll("_", " ")}`;
  return `${nameOf(String(answer.metadata?.by))} ${verbOf(answer.metadata?.decision)} this`;
}

const verbOf = (decision: unknown): string =>
  decision === "approve" ? "approved" : decision === "deny" ? "denied" : "answered";

function note(id: string, text: Note): void {
  notes.set(id, text);
  setTimeout(() => notes.delete(id), NOTE_MS);
}

/** Notes the answers that other people give while their questions are in view. */
export function watchAnswers(): () => void {
  const quiet = onEvents((events) => {
    for (const event of events) if (event.status === "answered") noteEvent(event);
  });
  const leave = () => Promise.all(pending.keys().map(send));
  addEventListener("pagehide", leave);
  // On a phone, a page that is frozen may never run again.
  document.addEventListener("freeze", leave);
  beforeSignOut.add(leave);
  return () => {
    quiet();
    removeEventListener("pagehide", leave);
    document.removeEventListener("freeze", leave);
    beforeSignOut.delete(leave);
    // The session has ended, and the next one must not send these answers.
    for (const id of pending.keys()) undo(id);
    for (const map of [failures, notes]) map.clear();
  };
}

function noteEvent(event: DelegationEvent): void {
  const known = lastAsked.get(event.delegation_id);
  const flight = flightOf(event.delegation_id)?.value;
  if (!known || !flight || asks(flight.state) || pending.get(known) || notes.get(known)) return;
  note(known, { flight, text: `${nameOf(String(event.by))} ${verbOf(event.decision)} this`, at: event.at });
}

/** The question that each delegation asked last, as the page showed it. */
const lastAsked = new Map<string, string>();
export function rememberAsked({ id, interrupt }: Flight): void {
  if (interrupt) lastAsked.set(id, interrupt.id);
}
