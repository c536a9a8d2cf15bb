/** The agents with presence and counts. Presence is in no event, so they are read again from time to time. */
import { effect, signal } from "@preact/signals";
import type { Agent } from "../../schema/agent.ts";
import { checkSession, isCurrent, session } from "../session/session.ts";
import { onEvents } from "./stream.ts";

/** Null: not read yet. */
export const agents = signal<readonly Agent[] | null>(null);
/** Whether the first reading is over: it may have failed. */
export const haveReadAgents = signal(false);

const IDLE_MS = 10_000;
/** The shortest time between two readings, however many events arrive. */
const BUSY_MS = 2_000;
/** A request reads a hundred agents; thousands are read less often, so that a page causes one request a second. */
const PER_AGENT_MS = 10;
/** Events that arrive together cause one reading. */
const TOGETHER_MS = 100;

let timer: ReturnType<typeof setTimeout> | undefined;
let dueAt = Number.POSITIVE_INFINITY;
let readAt = Number.NEGATIVE_INFINITY;

function readWithin(ms: number): void {
  const at = performance.now() + ms;
  if (at >= dueAt) return;
  dueAt = at;
  clearTimeout(timer);
  timer = setTimeout(() => void readAgents(), ms);
}

const pauseOf = (ms: number): number => Math.max(ms, PER_AGENT_MS * (agents.peek()?.length ?? 0));
const readSoon = (): void => readWithin(Math.max(TOGETHER_MS, readAt + pauseOf(BUSY_MS) - performance.now()));

export async function readAgents(): Promise<void> {
  clearTimeout(timer);
  dueAt = Number.POSITIVE_INFINITY;
  const connection = session.peek()?.connection;
  if (!connection) return;
  try {
    if (agents.peek() === null || !document.hidden) {
      readAt = performance.now();
      const found = await connection.admin.listAgents();
      if (isCurrent(connection)) agents.value = found;
    }
  } catch (error) {
    checkSession(error);
  }
  if (isCurrent(connection)) haveReadAgents.value = true;
  readWithin(pauseOf(IDLE_MS));
}

/** Reads the agents while somebody is signed in. */
export function startAgents(): () => void {
  const quiet = onEvents(readSoon);
  // A hidden page does not read.
  const returned = () => {
    if (!document.hidden) readSoon();
  };
  document.addEventListener("visibilitychange", returned);
  // The first answer tells every part of the page that the broker is back.
  addEventListener("online", readAgents);
  const stop = effect(() => {
    agents.value = null;
    haveReadAgents.value = false;
    if (session.value) void readAgents();
  });
  return () => {
    quiet();
    stop();
    document.removeEventListener("visibilitychange", returned);
    removeEventListener("online", readAgents);
    clearTimeout(timer);
  };
}

export const agentOf = (name: string): Agent | undefined =>
  agents.value?.find((agent) => agent.name === name);
