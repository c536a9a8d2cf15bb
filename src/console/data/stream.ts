/**
 * The events, by one stream for all pages of a session: browsers allow six connections to one origin. The page that holds
 * the lock streams and passes on what it receives. Without locks, each page has a stream, and closes it while hidden.
 * A stream resumes by cursor.
 */
import { effect, signal } from "@preact/signals";
import type { DelegationEvent, StreamEvent } from "../../schema/event.ts";
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

/** Browsers offer locks only on HTTPS and on localhost. */
const locks: LockManager | undefined = navigator.locks;

/** False while the page is hidden and has closed its stream. A shared stream stays open. */
const isWanted = signal(locks !== undefined || !document.hidden);
let hiding: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden) isWanted.value = true;
  else if (!locks)
    hiding = setTimeout(() => {
      isWanted.value = false;
    }, HIDDEN_MS);
});

/** Subscribes to the events while somebody is signed in and the page needs a stream. */
export function startStream(): () => void {
  let cursor: string | undefined;
  let of: Connection | undefined;
  return effect(() => {
    const { connection, id = "" } = session.value ?? {};
    if (!connection || !isWanted.value) return;
    if (of !== connection) {
      clearFlights();
      cursor = undefined;
      of = connection;
    }
    const stop = new AbortController();
    const { signal: abort } = stop;
    const waiting: DelegationEvent[] = [];
    const receive = (event: StreamEvent) => {
      if (event.type === "RESET") void readFlights(connection, abort).catch(checkSession);
      else if (event.type !== "DELEGATION_SNAPSHOT") {
        if (waiting.length === 0) setTimeout(() => deliver(connection, waiting.splice(0)), BATCH_MS);
        waiting.push(event);
      }
      cursor = event.id;
    };
    const name = `errand ${id}`;
    const others = locks && new BroadcastChannel(name);
    others?.addEventListener("message", ({ data }: MessageEvent<StreamEvent>) => receive(data));
    const stream = async () => {
      for await (const event of connection.delegator.watch({}, { after: cursor, signal: abort })) {
        others?.postMessage(event);
        receive(event);
      }
    };
    const follow = async () => {
      if (cursor === undefined) {
        // The cursor first and the lists second, so that nothing falls between them.
        const newest = await connection.delegator.cursor({}, { signal: abort });
        cursor ??= newest;
        void readFlights(connection, abort).catch(checkSession);
      }
      // Waits while another page holds the lock, then resumes by the cursor of what that page passed on.
      await (locks ? locks.request(name, { signal: abort }, stream) : stream());
    };
    follow().catch((error: unknown) => {
      if (!abort.aborted) checkSession(error);
    });
    return () => {
      stop.abort();
      others?.close();
    };
  });
}

function deliver(connection: Connection, events: readonly DelegationEvent[]): void {
  // After a sign-out, drop them. On a hidden page, apply them: its cursor is past them.
  if (session.value?.connection !== connection) return;
  applyEvents(connection, events);
  for (const listener of listeners) listener(events);
}
