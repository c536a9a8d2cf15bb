/** What no event tells, because only time passes: a question about to expire, and work for an agent without workers. */
import { readRecord } from "../../lifecycle/stored-delegation.ts";
import { isUnavailable } from "../../redis/errors.ts";
import type { Broker } from "../broker.ts";
import { openInterrupt } from "../delegations/parse.ts";
import { queueDepths } from "../upkeep/queue-depths.ts";
import type { Audience } from "./audience.ts";
import type { SubscriptionStore } from "./store.ts";

export async function tellExpiring(
  broker: Pick<Broker, "redis" | "shards">,
  store: SubscriptionStore,
  audience: Audience,
  now: number,
): Promise<void> {
  for (const name of await store.expiring(now)) {
    const [delegation = "", question = ""] = name.split(" ");
    const record = await readRecord(broker.redis, broker.shards, delegation).catch((error: unknown) => {
      // Its shard is away: later.
      if (isUnavailable(error)) throw error;
      return null;
    });
    const isOpen = record && openInterrupt(record)?.id === question;
    const told = isOpen
      ? audience.told({
          ...{ kind: "question_expiring", agent: record.get("target"), at: now },
          ...{ delegation, question, delegator: record.get("delegator") },
        })
      : [];
    await store.tell(told, now, name);
  }
}

type Watches = Pick<Broker, "agents" | "bulk" | "clock" | "presence" | "shards">;

export async function tellNoWorkers(
  broker: Watches,
  store: SubscriptionStore,
  audience: Audience,
  now: number,
): Promise<void> {
  if (!audience.wants("no_worker")) return;
  for (const { agent } of await waitingOf(broker, audience.agentsToWatch())) {
    if (!(await lacksWorkers(broker, agent))) continue;
    await store.tell(audience.told({ kind: "no_worker", agent, at: now, delegator: "" }), now);
  }
}

interface Waiting {
  readonly agent: string;
  readonly waiting: number;
}

/** Agents with work that waits and none in progress. */
async function waitingOf(broker: Watches, names: readonly string[] | null): Promise<Waiting[]> {
  if (names === null)
    return (await queueDepths(broker)).filter(({ waiting, working }) => waiting > 0 && working === 0);
  const found = await Promise.all(
    names.map(async (agent) => ({ agent, ...(await broker.agents.counts(agent)) })),
  );
  return found.filter(({ waiting, working }) => waiting > 0 && working === 0);
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
