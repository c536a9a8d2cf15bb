/**
 * Notifies of work that waits for an agent for which nobody polls. Limit: an agent is looked at again once the first of the
 * notified subscriptions may be notified again (`every_seconds`), or after ten seconds if it has workers or is paused. Until
 * then, work that waits for it costs no command.
 */
import type { Broker } from "../broker.ts";
import { queueDepths } from "../upkeep/queue-depths.ts";
import type { Audience } from "./audience.ts";
import type { SubscriptionStore } from "./store.ts";

type Watches = Pick<Broker, "agents" | "bulk" | "clock" | "presence" | "shards">;

/** When an agent that has workers, or is paused, is looked at again. */
const LOOK_AGAIN_MS = 10_000;
/** For more agents than this, the queues of all agents are read, a hundred in one command. */
const READ_BY_NAME = 20;

export class NoWorkers {
  /** By agent with work that waits: when it is looked at again, ms. */
  readonly #nextAt = new Map<string, number>();
  #audience: Audience | null = null;

  async look(broker: Watches, store: SubscriptionStore, audience: Audience, now: number): Promise<void> {
    // The new audience may have others to notify.
    if (audience !== this.#audience) this.#nextAt.clear();
    this.#audience = audience;
    if (!audience.wants("no_worker")) return;
    const isDue = (agent: string) => (this.#nextAt.get(agent) ?? 0) <= now;
    const names = audience.agentsToWatch();
    const waiting = await waitingOf(broker, names?.filter(isDue) ?? null);
    // An agent whose work no longer waits is looked at as soon as work waits again.
    const isWaiting = new Set(waiting.map(({ agent }) => agent));
    for (const agent of this.#nextAt.keys())
      if (isDue(agent) || (names === null && !isWaiting.has(agent))) this.#nextAt.delete(agent);
    for (const { agent } of waiting) {
      if (!isDue(agent)) continue;
      const notices = audience.noticesOf({ kind: "no_worker", agent, at: now, delegator: "" });
      if (notices.length === 0) continue;
      const lacks = await lacksWorkers(broker, agent);
      const next = lacks ? (await store.addOfTime(notices, now)).next : now + LOOK_AGAIN_MS;
      this.#nextAt.set(agent, next);
    }
  }
}

interface Waiting {
  readonly agent: string;
  readonly waiting: number;
}

/** Agents with work that waits and none in progress. */
async function waitingOf(broker: Watches, names: readonly string[] | null): Promise<Waiting[]> {
  const isIdle = ({ waiting, working }: { waiting: number; working: number }) => waiting > 0 && working === 0;
  if (names === null || names.length > READ_BY_NAME) {
    const wanted = names && new Set(names);
    return (await queueDepths(broker)).filter((one) => isIdle(one) && wanted?.has(one.agent) !== false);
  }
  const found = await Promise.all(
    names.map(async (agent) => ({ agent, ...(await broker.agents.counts(agent)) })),
  );
  return found.filter(isIdle);
}

/** How many delegations still wait for the agent while nobody works; 0: they do not. */
export async function stillWaiting(broker: Watches, agent: string): Promise<number> {
  const [found] = await waitingOf(broker, [agent]);
  return found && (await lacksWorkers(broker, agent)) ? found.waiting : 0;
}

/** As `client/alarms.ts` says it of an agent: it is not paused, and nobody polls. */
async function lacksWorkers(
  { agents, presence }: Pick<Broker, "agents" | "presence">,
  agent: string,
): Promise<boolean> {
  const found = await agents.find(agent);
  if (!found || found.spec.delivery.mode === "push" || found.paused) return false;
  return (await presence.of(agent)).state !== "online";
}
