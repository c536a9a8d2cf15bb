/** How the work of each agent ended in the last hour, for those who may know it. Read while somebody looks. */
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { AgentFigures } from "../../schema/stats.ts";
import { seesAll } from "../session/rights.ts";
import { checkSession, isCurrent, session } from "../session/session.ts";

const PERIOD_MS = 60_000;

interface Read {
  /** The session that read them. */
  readonly of: string;
  readonly byAgent: ReadonlyMap<string, AgentFigures>;
}
const read = signal<Read | null>(null);
let readAt = Number.NEGATIVE_INFINITY;

/** The broker has none for callers. */
export const hasFigures = computed(
  () => seesAll.value || session.value?.principal.startsWith("agent:") === true,
);

/** Undefined: not read yet. */
export const figuresOf = (agent: string): AgentFigures | undefined =>
  read.value !== null && read.value.of === session.value?.id ? read.value.byAgent.get(agent) : undefined;

/** Reads the figures once a minute while the component is shown in a visible page. */
export function useFigures(): void {
  const { connection, id } = session.value ?? {};
  const isWanted = hasFigures.value;
  useEffect(() => {
    if (!connection || id === undefined || !isWanted) return;
    const stop = new AbortController();
    const { signal: abort } = stop;
    const readNow = async (): Promise<void> => {
      const isFresh = read.peek()?.of === id && performance.now() - readAt < PERIOD_MS / 2;
      if (document.hidden || isFresh) return;
      readAt = performance.now();
      try {
        const { agents } = await connection.admin.statsByAgent({ signal: abort });
        if (!isCurrent(connection)) return;
        read.value = { of: id, byAgent: new Map(agents.map((figures) => [figures.agent, figures])) };
      } catch (error) {
        if (!abort.aborted) checkSession(error);
      }
    };
    void readNow();
    const timer = setInterval(readNow, PERIOD_MS);
    document.addEventListener("visibilitychange", readNow);
    return () => {
      stop.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", readNow);
    };
  }, [connection, isWanted]);
}
