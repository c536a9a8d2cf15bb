/**
 * The events, by one stream for all pages of a session: browsers allow six connections to one origin. The page that
 * leads streams and passes on what it receives. Without locks, each page has a stream, and closes it while hidden.
 * A stream resumes by cursor.
 */
import { effect, signal } from "@preact/signals";
import type { DelegationEvent, StreamEvent } from "../../schema/event.ts";
import { checkSession, isCurrent, session } from "../session/session.ts";
import { type Connection, lostSince } from "./connection.ts";
import { applyEvents, clearDelegations, readDelegations } from "./delegations.ts";

const HIDDEN_MS = 30_000;
/** Events that arrive together are applied together. */
const BATCH_MS = 50;
/** The pause after a call that failed for good. */
const AGAIN_MS = 10_000;

/** Null: events were lost, so listeners must read again. */
type Listener = (events: readonly DelegationEvent[] | null) => void;
const listeners = new Set<Listener>();

/** Calls the listener with each batch of events, or with null after a loss, until the returned function is called. */
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

/** A message of the leading page. Each turn has a number, because a page that was frozen passes on old events. */
interface Passed {
  readonly turn: number;
  /** Null: the turn begins. */
  readonly event: StreamEvent | null;
}

/** Subscribes to the events while somebody is signed in and the page needs a stream. */
export function startStream(): () => void {
  let cursor: string | undefined;
  let of: Connection | undefined;
  return effect(() => {
    const { connection, id = "" } = session.value ?? {};
    if (!connection) clearDelegations();
    if (!connection || !isWanted.value) return;
    if (of !== connection) {
      clearDelegations();
      cursor = undefined;
      of = connection;
    }
    const stop = new AbortController();
    const { signal: abort } = stop;
    const waiting: DelegationEvent[] = [];
    const readAll = () => persist(() => readDelegations(connection, abort), abort);
    const readAgain = () => {
      for (const listener of listeners) listener(null);
      void readAll();
    };
    const receive = (event: StreamEvent) => {
      if (event.type === "RESET") readAgain();
      else if (event.type !== "DELEGATION_SNAPSHOT") {
        if (waiting.length === 0) setTimeout(() => deliver(connection, waiting.splice(0)), BATCH_MS);
        waiting.push(event);
      }
      cursor = event.id;
    };
    const name = `errand events ${id}`;
    const others = locks && new BroadcastChannel(name);
    const over = new Set<number>();
    let current = 0;
    const take = ({ turn, event }: Passed) => {
      if (over.has(turn)) return;
      if (turn !== current) over.add(current);
      current = turn;
      if (event) receive(event);
    };
    others?.addEventListener("message", ({ data }: MessageEvent<Passed>) => take(data));
    // Resumes by the cursor of the last event that the previous leader passed on.
    const lead = async (signal: AbortSignal) => {
      const turn = Math.random();
      const pass = (event: StreamEvent | null) => {
        others?.postMessage({ turn, event });
        take({ turn, event });
      };
      pass(null);
      for await (const event of connection.delegator.watch({}, { after: cursor, signal })) pass(event);
    };
    // A page that was frozen may have missed what others passed on.
    document.addEventListener("resume", readAgain);
    const follow = async () => {
      if (cursor === undefined) {
        // The cursor first and the lists second, so that nothing falls between them.
        const newest = await connection.delegator.cursor({}, { signal: abort });
        cursor ??= newest;
        void readAll();
      }
      if (!locks) return lead(abort);
      const { leadInTurn } = await import("./leader.ts");
      await leadInTurn({ locks, name, isConnected: () => lostSince.peek() === null, lead, abort });
    };
    void persist(follow, abort);
    return () => {
      stop.abort();
      others?.close();
      document.removeEventListener("resume", readAgain);
    };
  });
}

/** Tries again until the work succeeds, the session ends, or the signal aborts. Never rejects. */
async function persist(work: () => Promise<void>, abort: AbortSignal): Promise<void> {
  while (!abort.aborted) {
    try {
      return await work();
    } catch (error) {
      if (abort.aborted) return;
      checkSession(error);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

function deliver(connection: Connection, events: readonly DelegationEvent[]): void {
  // After a sign-out, drop them. On a hidden page, apply them: its cursor is past them.
  if (!isCurrent(connection)) return;
  applyEvents(connection, events);
  for (const listener of listeners) listener(events);
}
