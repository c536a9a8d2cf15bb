/** Reads subscriptions for their owner and the operator, without the secrets of their channels. */
import { ErrandError } from "../../schema/errors.ts";
import { type Channel, SUBSCRIPTION_ID, type Subscription } from "../../schema/subscription.ts";
import { toInstant } from "../../schema/values.ts";
import { isOfEarlierAgent, type Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { parseCursor, toCursor } from "../list-cursor.ts";
import { type ChannelState, lanesOf, type StoredSubscription } from "./stored-subscription.ts";

type Needs = Pick<Broker, "agents" | "subscriptions">;

export const noSubscription = (id: string): ErrandError =>
  new ErrandError("not_found", `There is no subscription '${id}'.`, {
    recovery: "List your subscriptions to find its id.",
  });

/** Throws `not_found` also for a principal that is neither its owner nor the operator. */
export async function findSubscription(
  broker: Needs,
  principal: Principal,
  id: string,
): Promise<StoredSubscription> {
  const found = await broker.subscriptions.store.find(id);
  const isOwner = principal.kind === "operator" || found?.owner === principal.text;
  if (!found || !isOwner || (await isOfEarlierAgent(broker, principal, found.created_at)))
    throw noSubscription(id);
  return found;
}

export const describeSubscription = async (
  broker: Needs,
  principal: Principal,
  id: string,
): Promise<Subscription> => describe(broker, await findSubscription(broker, principal, id));

async function describe({ subscriptions }: Needs, subscription: StoredSubscription): Promise<Subscription> {
  const { id, owner, settings, channels, dropped, created_at, updated_at } = subscription;
  const { name, events, filter, deliver, digest_above, quiet, every_seconds } = settings;
  const shown = deliver.map(async (channel, n) => {
    const lanes = lanesOf(n);
    const waiting = await subscriptions.store.waiting(id, lanes);
    return {
      ...{ kind: channel.kind, to: placeOf(channel), after_seconds: channel.after_seconds },
      ...shownState(channels[n] ?? {}),
      waiting: waiting.reduce((sum, count) => sum + count, 0),
      dropped: lanes.reduce((sum, lane) => sum + (dropped.get(lane) ?? 0), 0),
    };
  });
  return {
    ...{ id, name: name ?? null, owner, events, filter, deliver: await Promise.all(shown) },
    ...{ digest_above, quiet, every_seconds },
    created_at: toInstant(created_at),
    updated_at: toInstant(updated_at),
  };
}

/** Where a channel sends to, without the secrets with which others could send there. */
function placeOf(channel: Channel): string {
  if (channel.kind === "email") return channel.to;
  if (channel.kind === "webhook" || channel.kind === "ntfy") return channel.url;
  return new URL(channel.url).origin;
}

function shownState({ since, problem, paused, delivered_at }: ChannelState) {
  const isFailing = since !== undefined && problem !== undefined;
  return {
    state: paused ? ("paused" as const) : isFailing ? ("failing" as const) : ("ok" as const),
    problem: isFailing ? { message: problem, since: toInstant(since) } : null,
    delivered_at: delivered_at === undefined ? null : toInstant(delivered_at),
  };
}

/** A principal's own subscriptions; the operator's list has those of all. */
export async function listSubscriptions(
  broker: Needs,
  principal: Principal,
  { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
): Promise<{ subscriptions: Subscription[]; next_cursor: string | null }> {
  const after = cursor === undefined ? null : parseCursor(cursor, SUBSCRIPTION_ID);
  const { store } = broker.subscriptions;
  const owner = principal.kind === "operator" ? null : principal.text;
  const ids = (await store.ids(owner, after?.at ?? 0, limit + MOST_AT_ONE_INSTANT)).filter(
    ({ id, at }) => !after || at > after.at || id > after.id,
  );
  const page = ids.slice(0, limit);
  const found = await Promise.all(page.map(({ id }) => store.find(id)));
  const own = [];
  for (const one of found)
    if (one && !(await isOfEarlierAgent(broker, principal, one.created_at))) own.push(one);
  const last = page.at(-1);
  return {
    subscriptions: await Promise.all(own.map((one) => describe(broker, one))),
    next_cursor: ids.length > limit && last ? toCursor(last) : null,
  };
}

/** More subscriptions than one instant can have in practice. */
const MOST_AT_ONE_INSTANT = 200;
