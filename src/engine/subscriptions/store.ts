/**
 * Stores subscriptions and the notifications that wait for their channels, outside the shards: they concern agents of all
 * shards. Its scripts compare what the gateway read with what is stored, so that each notification is added once.
 */
import type { Clock } from "../../lifecycle/command.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import { engineTime } from "../../redis/time.ts";
import { LIMITS } from "../../schema/limits.ts";
import {
  CHANNELS,
  type ChannelState,
  channelOf,
  lanesOf,
  type Notice,
  type StoredNotice,
  type StoredSubscription,
  toNotice,
  toStored,
} from "./stored-subscription.ts";

const lua = (name: string): string => readLua(`./${name}.lua`, import.meta.url);
const createScript = new Script(`#!lua\n${lua("create")}`);
const changeScript = new Script(`#!lua\n${lua("change")}`);
const deleteScript = new Script(`#!lua flags=allow-oom\n${lua("delete")}`);
/** Runs at full memory, too: otherwise the same events would be read for ever. Lanes are bounded. */
const noticeScript = new Script(`#!lua flags=allow-oom\n${lua("append")}${lua("notice")}`);
const tellScript = new Script(`#!lua flags=allow-oom\n${lua("append")}${lua("tell")}`);
const claimScript = new Script(`#!lua flags=allow-oom\n${lua("claim")}`);
const holdScript = new Script(`#!lua flags=allow-oom\n${lua("hold")}`);
const settleScript = new Script(`#!lua flags=allow-oom\n${lua("settle")}`);

const MOST = LIMITS.notices_waiting.value;
const PREFIX = keys.subscription("");
const AT_ONCE = 100;
/** How many lanes one call takes. */
export const CLAIMED_AT_ONCE = AT_ONCE;

/** A notification for one channel, to be added to its lane. */
export interface LaneNotice {
  readonly subscription: string;
  readonly lane: string;
  /** When it may be sent, ms. */
  readonly due: number;
  readonly notice: Notice;
  /** For this long, no other about this agent follows, ms. */
  readonly pause?: number;
}

/** What becomes due because time passes; timely.ts has the names. */
export interface Timely {
  readonly name: string;
  /** When it is due, ms. */
  readonly at: number;
}

/** A change of a subscription. */
export interface SubscriptionChange {
  readonly fields: Readonly<Record<string, string | number>>;
  /** Fields to remove. */
  readonly removes: readonly string[];
  /** Lanes to remove, with what waits in them. */
  readonly drops: readonly string[];
  /** Lanes that stay. */
  readonly keeps: readonly string[];
}

/** What became of the first notifications of a lane. */
export interface LaneChange {
  /** How many of the first are done. */
  readonly done: number;
  /** When the others are due, ms; null: not until the subscription changes. */
  readonly due: number | null;
  readonly state: ChannelState;
  /** The subscription's epoch when it was read. */
  readonly epoch: string;
  /** Whether the channel is paused by this, so that audiences are read again. */
  readonly changes?: boolean;
  /** How many of the done ones were dropped. */
  readonly drops?: number;
}

/** Who may send what waits in a lane. */
export interface LaneClaim {
  readonly subscription: string;
  readonly lane: string;
  readonly claim: number;
}

export interface LaneAt {
  readonly subscription: StoredSubscription;
  /** The first notifications that wait, oldest first. */
  readonly notices: readonly StoredNotice[];
  /** By Redis' clock, ms. */
  readonly now: number;
  /** The new claim. */
  readonly claim: number;
}

export class SubscriptionStore {
  readonly #redis: Redis;
  readonly #clock: Clock;

  constructor(redis: Redis, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** By Redis' clock, ms. */
  async now(): Promise<number> {
    return engineTime(this.#redis, this.#clock);
  }

  /** Null also for one that this version cannot read. */
  async find(id: string): Promise<StoredSubscription | null> {
    const fields = await this.#redis.hgetall(keys.subscription(id));
    return fields.settings === undefined ? null : toStored(id, fields);
  }

  async ownerOf(id: string): Promise<string | null> {
    return this.#redis.hget(keys.subscription(id), "owner");
  }

  async create(
    id: string,
    owner: string,
    at: number,
    fields: Readonly<Record<string, string | number>>,
    /** By shard: the newest event from before it is created. */
    positions: readonly string[],
  ): Promise<boolean> {
    const { subscription, subscriptions, subscriptionsOf, subscriptionsVersion, noticed } = keys;
    const made = await createScript.run(
      this.#redis,
      [subscription(id), subscriptions, subscriptionsOf(owner), subscriptionsVersion, noticed],
      [
        ...[id, at, LIMITS.subscriptions.value, positions.length],
        ...positions.flatMap((position, shard) => [shard, position]),
        ...Object.entries(fields).flat(),
      ],
    );
    return made === 1;
  }

  /** False when it was changed or deleted since its settings were read. */
  async change(
    id: string,
    read: string,
    { fields, removes, drops, keeps }: SubscriptionChange,
  ): Promise<boolean> {
    const now = await this.now();
    const lists = [drops, keeps, removes].flatMap((list) => [list.length, ...list]);
    const changed = await changeScript.run(
      this.#redis,
      [keys.subscription(id), keys.subscriptionsVersion, keys.subscriptionsBusy],
      [id, read, now, ...lists, ...Object.entries(fields).flat()],
    );
    return changed === 1;
  }

  async settingsOf(id: string): Promise<string | null> {
    return this.#redis.hget(keys.subscription(id), "settings");
  }

  /** False when there was none. */
  async delete(id: string, owner: string): Promise<boolean> {
    const lanes = CHANNELS.flatMap(lanesOf);
    const deleted = await deleteScript.run(
      this.#redis,
      [
        keys.subscription(id),
        keys.subscriptions,
        keys.subscriptionsOf(owner),
        keys.subscriptionsVersion,
        keys.subscriptionsBusy,
        keys.noticed,
        keys.questionsExpiring,
      ],
      [id, ...lanes, "rung"],
    );
    return deleted === 1;
  }

  /** Ids and when they were created, oldest first: of all, or of a principal. */
  async ids(owner: string | null, after: number, limit: number): Promise<{ id: string; at: number }[]> {
    const key = owner === null ? keys.subscriptions : keys.subscriptionsOf(owner);
    const found = await this.#redis.zrange(
      key,
      String(after),
      "+inf",
      "BYSCORE",
      "LIMIT",
      0,
      limit,
      "WITHSCORES",
    );
    return found.flatMap((id, n) => (n % 2 === 0 ? [{ id, at: Number(found[n + 1]) }] : []));
  }

  async any(): Promise<boolean> {
    return (await this.#redis.zcard(keys.subscriptions)) > 0;
  }

  async version(): Promise<string> {
    return (await this.#redis.get(keys.subscriptionsVersion)) ?? "0";
  }

  /** All of them, and the version that they have at least. */
  async all(): Promise<{ version: string; subscriptions: StoredSubscription[] }> {
    const version = await this.version();
    const ids = await this.#redis.zrange(keys.subscriptions, "0", "-1");
    const subscriptions: StoredSubscription[] = [];
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const found = await Promise.all(ids.slice(at, at + AT_ONCE).map((id) => this.find(id)));
      subscriptions.push(...found.filter((one) => one !== null));
    }
    return { version, subscriptions };
  }

  /** How many notifications wait in these lanes. */
  waiting(id: string, lanes: readonly string[]): Promise<number[]> {
    return Promise.all(lanes.map((lane) => this.#redis.llen(keys.notices(id, lane))));
  }

  /** The last event of the shard that was read; empty: none was. */
  async position(shard: number): Promise<string> {
    return (await this.#redis.hget(keys.noticed, String(shard))) ?? "";
  }

  /** Adds the notifications of the events of a shard up to `to`. False: another gateway was faster. */
  async addOfEvents(
    shard: number,
    from: string,
    to: string,
    notices: readonly LaneNotice[],
    questions: readonly Timely[],
  ): Promise<boolean> {
    const moved = await noticeScript.run(
      this.#redis,
      [keys.noticed, keys.subscriptionsBusy, keys.questionsExpiring],
      [
        ...[shard, from, to, PREFIX, MOST, questions.length],
        ...questions.flatMap(({ name, at }) => [name, at]),
        ...notices.flatMap(({ subscription, lane, due, notice }) => [
          subscription,
          lane,
          due,
          JSON.stringify(notice),
        ]),
      ],
    );
    return moved === 1;
  }

  /**
   * Adds notifications that are due because time has passed. `timely`: what was due, so that it is added once, and what is due
   * next in its place. Returns how many were added, and when the next one about the same agents may follow, ms.
   */
  async addOfTime(
    notices: readonly LaneNotice[],
    now: number,
    timely: { readonly name: string; readonly next?: Timely | undefined } = { name: "" },
  ): Promise<{ added: number; next: number }> {
    const answer = await tellScript.run(
      this.#redis,
      [keys.subscriptionsBusy, keys.questionsExpiring],
      [
        ...[now, PREFIX, MOST, timely.name, timely.next?.name ?? "", timely.next?.at ?? ""],
        ...notices.flatMap(({ subscription, lane, due, notice, pause }) => [
          ...[subscription, lane, due, JSON.stringify(notice)],
          pause === undefined ? "" : `${notice.agent} ${pause}`,
        ]),
      ],
    );
    const [added, next] = Array.isArray(answer) ? answer.map(Number) : [];
    return { added: added ?? 0, next: next ?? now };
  }

  /** The names of what is due by now (timely.ts). */
  dueOfTime(now: number): Promise<string[]> {
    return this.#redis.zrange(keys.questionsExpiring, "-inf", String(now), "BYSCORE", "LIMIT", 0, AT_ONCE);
  }

  /** Claims lanes that are due: nobody else gets them before `claim`, ms. */
  async claim(now: number, claim: number): Promise<LaneClaim[]> {
    const found = await claimScript.run(this.#redis, [keys.subscriptionsBusy], [now, claim, AT_ONCE]);
    return (Array.isArray(found) ? found : []).map((text) => {
      const [subscription = "", lane = ""] = String(text).split(" ");
      return { subscription, lane, claim };
    });
  }

  /** Extends the claim to `forMs` from now. Null: the subscription is gone, or the claim is over. */
  async lane(
    { subscription: id, lane, claim }: LaneClaim,
    most: number,
    forMs: number,
  ): Promise<LaneAt | null> {
    const now = await this.now();
    const next = now + forMs;
    const list = keys.notices(id, lane);
    const held = await holdScript.run(this.#redis, [keys.subscriptionsBusy], [`${id} ${lane}`, claim, next]);
    if (held !== 1) return null;
    const [subscription, texts] = await Promise.all([this.find(id), this.#redis.lrange(list, 0, most - 1)]);
    return subscription && { subscription, notices: texts.map(toNotice), now, claim: next };
  }

  /** Ends the claim: the lane is due for others. */
  async release({ subscription, lane, claim }: LaneClaim): Promise<void> {
    const now = await this.now();
    await holdScript.run(this.#redis, [keys.subscriptionsBusy], [`${subscription} ${lane}`, claim, now]);
  }

  /** Returns how many are left, or -1 when the claim is over, or the channel was replaced. */
  async settle(
    { subscription: id, lane, claim }: LaneClaim,
    first: StoredNotice,
    { done, due, state, epoch, changes = false, drops = 0 }: LaneChange,
  ): Promise<number> {
    const left = await settleScript.run(
      this.#redis,
      [keys.subscription(id), keys.notices(id, lane), keys.subscriptionsBusy],
      [
        ...[`${id} ${lane}`, first.text, done, due === null ? "" : Math.ceil(due), channelOf(lane)],
        ...[JSON.stringify(state), changes ? 1 : 0, keys.subscriptionsVersion, claim, drops, epoch],
        lane,
      ],
    );
    return Number(left);
  }
}
