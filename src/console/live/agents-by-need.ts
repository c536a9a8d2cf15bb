/** The order of agents and alarms: what needs somebody first. */
import { type Alarm, alarmsOf } from "../../client/alarms.ts";
import type { Agent } from "../../schema/agent.ts";

/** Alarms that no time ends come first, then those of failing workers, then busy agents. */
const SEVERITY: Readonly<Record<Alarm["kind"], number>> = {
  no_worker: 0,
  unreachable: 0,
  paused: 0,
  workers_paused: 1,
  all_busy: 2,
};

const sinceOf = (since: string | null | undefined): number => Date.parse(since ?? "") || Number.MAX_VALUE;

/** Those that wait longest first. */
export const bySeverity = (alarms: readonly Alarm[]): readonly Alarm[] =>
  alarms.toSorted((a, b) => SEVERITY[a.kind] - SEVERITY[b.kind] || sinceOf(a.since) - sinceOf(b.since) || 0);

/** An alarm, asking, with a queue, working, with work that waits for parts, with delayed work, with workers, paused, seen once, never seen. */
function agentRank(agent: Agent, now: number): number {
  const { counts, presence, paused } = agent;
  const [alarm] = bySeverity(alarmsOf([agent], now));
  if (alarm) return SEVERITY[alarm.kind];
  const signs = [
    counts.interrupted > 0,
    counts.waiting > 0,
    counts.working > 0,
    counts.awaiting > 0,
    counts.delayed > 0,
    presence.state === "online" && !paused,
    paused,
    presence.last_seen_at !== null,
    true,
  ];
  return 3 + signs.indexOf(true);
}

/** Whether an agent of the rank needs somebody, works, or has work. */
const IDLE_RANK = 8;

export interface ByNeed {
  /** Alarms by how long their oldest work waits, the others by name. */
  readonly agents: readonly Agent[];
  /** How many of them need somebody, or have work; they are the first. */
  readonly busy: number;
}

/** `now` is in milliseconds since 1970. */
export function agentsByNeed(agents: readonly Agent[], now: number): ByNeed {
  const ranked = agents.map((agent) => {
    const rank = agentRank(agent, now);
    return { agent, rank, since: rank < 3 ? sinceOf(agent.oldest_waiting_at) : 0 };
  });
  ranked.sort((a, b) => a.rank - b.rank || a.since - b.since);
  return {
    agents: ranked.map(({ agent }) => agent),
    busy: ranked.filter(({ rank }) => rank < IDLE_RANK).length,
  };
}
