/**
 * Who is notified of what. Limit: it decides by what a principal may see and answer in general; whether its token is still
 * valid is checked when a notification is sent.
 */
import { compareIds, type Entry } from "../../events/entry.ts";
import type { NoticeKind } from "../../schema/notice.ts";
import { matchesPattern, type Principal, seesAll, toPrincipal } from "../access/access.ts";
import type { LaneNotice } from "./store.ts";
import { isUrgent, laneOf, type Notice, type StoredSubscription } from "./stored-subscription.ts";

/** What a notification is about, and whom it concerns. */
export interface Happening extends Notice {
  /** Who delegated it; empty for `no_worker`. */
  readonly delegator: string;
  /** The event that reports it; absent: it is due because time has passed. */
  readonly event?: Pick<Entry, "id" | "shard">;
  /** Which of those whom it concerns are notified; absent: all of them. */
  readonly only?: (principal: Principal) => boolean;
}

/** Subscriptions by what they may be about. */
export class Audience {
  readonly version: string;
  /** When it was last known to be current, by Redis' clock, ms. */
  now: number;
  /** By owner: those that are only about what their owner delegated. */
  readonly #own = new Map<string, Member[]>();
  /** Those that may be about anything. */
  readonly #wide: Member[] = [];
  /** By agent: the agent's own subscriptions. */
  readonly #agents = new Map<string, Member[]>();
  readonly #kinds = new Set<NoticeKind>();

  constructor(version: string, now: number, subscriptions: readonly StoredSubscription[]) {
    this.version = version;
    this.now = now;
    this.isEmpty = subscriptions.length === 0;
    for (const subscription of subscriptions) {
      const member = { subscription, principal: toPrincipal(subscription.owner) };
      for (const kind of subscription.settings.events) this.#kinds.add(kind);
      const { kind, name, text } = member.principal;
      if (seesAll(member.principal)) this.#wide.push(member);
      else add(this.#own, text, member);
      if (kind === "agent") add(this.#agents, name, member);
    }
  }

  readonly isEmpty: boolean;

  wants(kind: NoticeKind): boolean {
    return this.#kinds.has(kind);
  }

  /** The agents for whose lack of workers somebody waits; null: all. */
  agentsToWatch(): readonly string[] | null {
    const members = [...this.#wide, ...[...this.#agents.values()].flat()];
    const watching = members.filter(({ subscription }) => subscription.settings.events.includes("no_worker"));
    const named = watching.flatMap(({ subscription, principal: { kind, name } }) => {
      const { agents } = subscription.settings.filter;
      return kind === "agent" ? [[name]] : [agents ?? null];
    });
    return named.includes(null) ? null : [...new Set(named.flatMap((names) => names ?? []))];
  }

  /** A notification for each channel that is not paused. */
  noticesOf(happening: Happening): LaneNotice[] {
    const { delegator, event: _, only = () => true, ...notice } = happening;
    const members = [
      ...this.#wide,
      ...(notice.kind === "no_worker"
        ? (this.#agents.get(notice.agent) ?? [])
        : (this.#own.get(delegator) ?? [])),
    ];
    return members
      .filter((member) => concerns(member, happening) && only(member.principal))
      .flatMap(({ subscription }) => toLanes(subscription, notice));
  }
}

interface Member {
  readonly subscription: StoredSubscription;
  readonly principal: Principal;
}

function add(map: Map<string, Member[]>, key: string, member: Member): void {
  map.set(key, [...(map.get(key) ?? []), member]);
}

function toLanes({ id, settings, channels }: StoredSubscription, notice: Notice): LaneNotice[] {
  return settings.deliver.flatMap(({ after_seconds }, n) => {
    if (channels[n]?.paused === true) return [];
    const pause = notice.kind === "no_worker" ? { pause: settings.every_seconds * 1000 } : {};
    return [
      {
        subscription: id,
        lane: laneOf(n, notice.kind),
        due: notice.at + (isUrgent(notice.kind) ? 0 : after_seconds * 1000),
        notice,
        ...pause,
      },
    ];
  });
}

function concerns(
  { subscription, principal }: Member,
  { kind, agent, delegator, state, event }: Happening,
): boolean {
  const { settings } = subscription;
  const { agents, delegators, states } = settings.filter;
  if (!settings.events.includes(kind) || (event && !isNew(subscription, event))) return false;
  if (agents && !agents.includes(agent)) return false;
  if (kind === "no_worker") return true;
  if (kind === "ended" && states && !states.some((one) => one === state)) return false;
  if (delegators) return delegators.some((pattern) => matchesPattern(toPrincipal(delegator), pattern));
  return delegator === principal.text || (kind !== "ended" && mayAnswerAll(principal));
}

/**
 * Whether the event came after the subscription was created: by its place in the stream of its shard, because the clocks of the
 * servers that have the two may differ.
 */
function isNew({ after }: StoredSubscription, { shard, id }: Pick<Entry, "id" | "shard">): boolean {
  const newest = after[shard];
  return newest === undefined || compareIds(id, newest) > 0;
}

const mayAnswerAll = ({ kind }: Principal): boolean => kind === "operator" || kind === "approver";
