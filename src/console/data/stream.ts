/**
 * The page's one event stream. It resumes by cursor after a lost connection, and after the page was hidden: browsers allow
 * few connections to one origin, so a hidden page gives its own back. One page keeps it, for the count and notifications.
 */
import { effect, signal } from "@preact/signals";
import type { DelegationEvent } from "../../schema/event.ts";
import { checkSession, session } from "../session/session.ts";
import type { Connection } from "./connection.ts";
import { applyEvents, clearFlights, readFlights } from "./flights.ts";

const HIDDEN_MS = 30_000;
/** Events that arrive together are applied together. */
const BATCH_MS = 50;

type Listener = (events: readonly DelegationEvent[]) => void;
const listeners = new Set<Listener>();

/** Calls the listener with every batch of events, until the returned function is called. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** False while the page is hidden and has given its stream back. */
const isWanted = signal(!document.hidden);
let hiding: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden) isWanted.value = true;
  else
    hiding = setTimeout(() => {
      if (!isLeader) isWanted.value = false;
    }, HIDDEN_MS);
});

/** Whether this page is the one that keeps its stream. The lock passes on when the page is closed. */
let isLeader = false;
// Absent on plain HTTP, except for localhost.
void navigator.locks?.request("errand-leader", () => {
  isLeader = true;
  isWanted.value = true;
  return new Promise<never>(() => {});
});

/** Streams while somebody is signed in and the page is wanted. */
export function startStream(): () => void {
  let cursor: string | undefined;
  let of: Connection | undefined;
  return effect(() => {
    const connection = session.value?.connection;
    if (!connection || !isWanted.value) return;
    if (of !== connection) {
      clearFlights();
      cursor = undefined;
      of = connection;
    }
    const stop = new AbortController();
    const remember = (newest: string) => {
      cursor = newest;
    };
    follow(connection, cursor, remember, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) checkSession(error);
    });
    return () => stop.abort();
  });
}

async function follow(
  connection: Connection,
  after: string | undefined,
  remember: (cursor: string) => void,
  abort: AbortSignal,
): Promise<void> {
  const { delegator } = connection;
  // The cursor first and the lists second, so that nothing falls between them.
  const cursor = after ?? (await delegator.cursor({}, { signal: abort }));
  if (after === undefined) void readFlights(connection, abort).catch(checkSession);
  const waiting: DelegationEvent[] = [];
  for await (const event of delegator.watch({}, { after: cursor, signal: abort })) {
    if (event.type === "RESET") void readFlights(connection, abort).catch(checkSession);
    else if (event.type !== "DELEGATION_SNAPSHOT") {
      if (waiting.length === 0) setTimeout(() => deliver(connection, waiting.splice(0)), BATCH_MS);
      waiting.push(event);
    }
    remember(event.id);
  }
}

function deliver(connection: Connection, events: readonly DelegationEvent[]): void {
  // After a sign-out, drop them. On a hidden page, apply them: its cursor is past them.
  if (session.value?.connection !== connection) return;
  applyEvents(connection, events);
  for (const listener of listeners) listener(events);
}
