/** How the work of each agent ended in the last hour, for those who may know it. Read while somebody looks. */
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DelegationEvent } from "../../schema/event.ts";
import type { AgentFigures } from "../../schema/stats.ts";
import { seesAll } from "../session/rights.ts";
import { checkSession, isCurrent, session } from "../session/session.ts";
import { onEvents } from "./stream.ts";

const PERIOD_MS = 60_000;
/** After a failure: the broker may give what it has read within the last ten seconds. */
const AGAIN_MS = 11_000;

interface Read {
  /** The session that read them. */
  readonly of: string;
  readonly byAgent: ReadonlyMap<string, AgentFigures>;
  /** When the first quarter of the hour began; null: there is no agent. */
  readonly since: string | null;
}
const read = signal<Read | null>(null);
let readAt = Number.NEGATIVE_INFINITY;

/** The broker has none for callers. */
export const hasFigures = computed(
  () => seesAll.value || session.value?.principal.startsWith("agent:") === true,
);

/** Null: not read yet. */
const current = computed(() => (read.value?.of === session.value?.id ? read.value : null));

/** Undefined: not read yet. */
export const figuresOf = (agent: string): AgentFigures | undefined => current.value?.byAgent.get(agent);

/** The states of what failed, as Find has them in its URL. */
export const FAILED_STATES = "failed,rejected";

/** How many failed or were rejected. */
export const failedIn = ({ failed, rejected }: AgentFigures): number => failed + rejected;

export interface Failures {
  readonly total: number;
  /** The agents, the one with the most failures first. */
  readonly agents: readonly string[];
  readonly since: string;
}

/** What failed in the last hour; null: nothing, as far as is known. */
export const failures = computed<Failures | null>(() => {
  const { byAgent, since = null } = current.value ?? {};
  if (byAgent === undefined || since === null) return null;
  const failing = [...byAgent.values()].filter((figures) => failedIn(figures) > 0);
  if (failing.length === 0) return null;
  failing.sort((a, b) => failedIn(b) - failedIn(a));
  return {
    total: failing.reduce((sum, figures) => sum + failedIn(figures), 0),
    agents: failing.map(({ agent }) => agent),
    since,
  };
});

const isFailure = ({ type, state }: DelegationEvent): boolean =>
  type === "DELEGATION_FAILED" && (state === "failed" || state === "rejected");

/** Counts what failed just now, until the figures are read again. */
function countFailures(events: readonly DelegationEvent[]): void {
  const { value } = read;
  if (value === null) return;
  const byAgent = new Map(value.byAgent);
  for (const { target, state } of events) {
    const figures = byAgent.get(target);
    if (figures && (state === "failed" || state === "rejected"))
      byAgent.set(target, { ...figures, [state]: figures[state] + 1 });
  }
  read.value = { ...value, byAgent };
}

/** Reads the figures once a minute, and after failures, while the component is shown in a visible page. */
export function useFigures(): void {
  const { connection, id } = session.value ?? {};
  const isWanted = hasFigures.value;
  useEffect(() => {
    if (!connection || id === undefined || !isWanted) return;
    const stop = new AbortController();
    const { signal: abort } = stop;
    const readNow = async (): Promise<void> => {
      if (document.hidden) return;
      readAt = performance.now();
      try {
        const { agents, since } = await connection.admin.statsByAgent({ signal: abort });
        if (!isCurrent(connection)) return;
        read.value = { of: id, byAgent: new Map(agents.map((figures) => [figures.agent, figures])), since };
      } catch (error) {
        if (!abort.aborted) checkSession(error);
      }
    };
    const readOld = (): void => {
      const isFresh = read.peek()?.of === id && performance.now() - readAt < PERIOD_MS / 2;
      if (!isFresh) void readNow();
    };
    let again: ReturnType<typeof setTimeout> | undefined;
    /** Something failed since the timer was set: what it reads may lack that. */
    let isBehind = false;
    const readDue = (): void => {
      again = isBehind ? setTimeout(readDue, AGAIN_MS) : undefined;
      isBehind = false;
      void readNow();
    };
    const quiet = onEvents((events) => {
      const failed = events?.filter(isFailure) ?? [];
      if (events !== null && failed.length === 0) return;
      countFailures(failed);
      isBehind = again !== undefined;
      again ??= setTimeout(readDue, AGAIN_MS);
    });
    readOld();
    const timer = setInterval(readOld, PERIOD_MS);
    document.addEventListener("visibilitychange", readOld);
    return () => {
      stop.abort();
      quiet();
      clearTimeout(again);
      clearInterval(timer);
      document.removeEventListener("visibilitychange", readOld);
    };
  }, [connection, isWanted]);
}
