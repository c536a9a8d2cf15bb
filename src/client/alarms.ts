/** Why agents need attention: their work waits, and nobody takes it. `errand status` and the console say it in words. */
import type { Agent } from "../schema/agent.ts";

export interface Alarm {
  /**
   * `paused`: the agent is · `unreachable`: the server of a push agent is · `no_worker`: nobody polls ·
   * `all_busy`: work waits for long, or much of it · `workers_paused`: some of its workers fail or cannot work.
   */
  readonly kind: "paused" | "unreachable" | "no_worker" | "all_busy" | "workers_paused";
  readonly agent: string;
  /** How many delegations could start now. */
  readonly waits: number;
  /** Since when the oldest of them could; null: not known, or none. */
  readonly since: string | null;
  /** Of paused workers: when the first tries again, and why the newest paused. */
  readonly until?: string;
  readonly reason?: string;
}

/** Busy workers are normal, so they are an alarm only from this many waiting delegations, or this long, on. */
const MANY = 10;
const LONG_MS = 300_000;

type Watched = Pick<Agent, "name" | "paused" | "presence" | "counts" | "delivery" | "limits"> & {
  readonly oldest_waiting_at?: Agent["oldest_waiting_at"];
  readonly slots?: Agent["slots"];
};

/** In the order of the agents; an agent may have two. `now` is in milliseconds since 1970. */
export function alarmsOf(agents: readonly Watched[], now = Date.now()): Alarm[] {
  return agents.flatMap((agent) => {
    const { name, presence, counts, oldest_waiting_at: since = null } = agent;
    const common = { agent: name, waits: counts.waiting, since };
    const kind = counts.waiting > 0 ? causeOf(agent, now) : null;
    const { paused } = presence;
    return [
      ...(kind === null ? [] : [{ kind, ...common }]),
      ...(paused === undefined
        ? []
        : [{ kind: "workers_paused" as const, ...common, until: paused.until, reason: paused.reason }]),
    ];
  });
}

/** Why waiting work does not start; null if it will. */
function causeOf(agent: Watched, now: number): Exclude<Alarm["kind"], "workers_paused"> | null {
  const { paused, presence, counts, delivery, oldest_waiting_at } = agent;
  if (paused) return "paused";
  if (presence.state !== "online" && !hasBusyWorker(agent))
    return delivery.mode === "push" ? "unreachable" : "no_worker";
  const isLong = now - Date.parse(oldest_waiting_at ?? "") >= LONG_MS;
  return isBusy(agent) && (counts.waiting >= MANY || isLong) ? "all_busy" : null;
}

/** Whether a worker holds a lease. It need not poll meanwhile, and a long lease needs few heartbeats. */
const hasBusyWorker = ({ counts, delivery }: Watched): boolean =>
  delivery.mode === "poll" && counts.working > 0;

/** Whether it works on as much as it can. */
function isBusy(agent: Watched): boolean {
  const { presence, counts, limits, slots } = agent;
  const most = slots?.most ?? limits?.max_working ?? Number.POSITIVE_INFINITY;
  return counts.working >= most || (hasBusyWorker(agent) && presence.pollers === 0);
}
