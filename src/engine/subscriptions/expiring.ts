/** What no event tells, because only time passes: a question about to expire. */
import { readRecord } from "../../lifecycle/stored-delegation.ts";
import { isUnavailable } from "../../redis/errors.ts";
import type { Broker } from "../broker.ts";
import { openInterrupt } from "../delegations/parse.ts";
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
