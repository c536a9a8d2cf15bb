/**
 * The broker as a model in memory. It takes the moves from the state table; permissions and error codes are written
 * here, from the contract. Limit: it knows only the injected clock. Every duration is a third of a UNIT away from a
 * whole one (two thirds for a sum of two), so that the real time of a run never decides anything.
 */
import { ASKED, MOVES, type Move, type MoveName } from "../../src/lifecycle/states.ts";
import { isTerminal, type State } from "../../src/schema/delegation.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { budgetQuestion, dropped, dueOfBudget, isStopped, judgeBudget, noted, reclaimed } from "./budgets.ts";
import type { Held, Item, ModelAgent, ModelRule, Refusal, Submitted } from "./item.ts";
import { Turns } from "./turns.ts";

/** Seconds. Time moves in whole units; durations are `n × UNIT + THIRD`. */
export const UNIT = 600;
export const THIRD = 200;
export const DEFAULT_TTL = 604_800;
/** The sweep looks for a missing ticket this many seconds after it is due. */
const CHECK = 5;
const CHECK_MAX = 300;
const FREE_RELEASES = 10;
/** How many outages a shard remembers. */
const OUTAGES = 8;
export const MAX_DEPTH = 8;

export function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

export const ADMITTED = "DELEGATION_STATUS:admitted";

/** Those at the end of a line first: the order in which none of them has its turn before it ends. */
export const lastFirst = (items: readonly Item[]): Item[] =>
  [...items].sort((a, b) => (b.behind ? (b.line ?? 0) : 0) - (a.behind ? (a.line ?? 0) : 0));

const rank = ({ priority, returned }: Item): number => (9 - priority) * 2 + (returned ? 1 : 2);

export class Model {
  now: number;
  readonly startedAt: number;
  readonly agents: readonly ModelAgent[];
  readonly items: Item[] = [];
  readonly rules: ModelRule[] = [];
  /** When the broker was away, oldest first. */
  readonly outages: { readonly from: number; readonly to: number }[] = [];
  /** Every lease ever granted. */
  readonly leases: Held[] = [];
  /** How often each move was made, over all walks. */
  readonly made: Map<string, number>;
  /** Commands taken in this walk. */
  taken = 0;
  readonly #turns = new Turns();
  #places = 0;
  #lines = 0;
  /** Ended, or asked about, at the same time as others of its conversation ended: whether it had its turn before is open. */
  readonly unsure = new Set<Item>();
  /** Ended delegations that their parents have not counted yet. */
  readonly #ended: Item[] = [];
  /** The place of all that the sweep which is under way queues. */
  #sweepPlace: number | null = null;

  constructor(now: number, agents: readonly ModelAgent[], made: Map<string, number>) {
    this.now = now;
    this.startedAt = now;
    this.agents = agents;
    this.made = made;
  }

  agent(name: string): ModelAgent {
    const found = this.agents.find((agent) => agent.name === name);
    if (!found) throw new Error(`no agent ${name}`);
    return found;
  }

  #count(agent: string, state: State): number {
    return this.items.filter((item) => item.target === agent && item.state === state).length;
  }

  isFull(agent: string): boolean {
    return this.#count(agent, "submitted") >= this.agent(agent).maxWaiting;
  }

  sees(by: string, { delegator, target }: Item): boolean {
    return ["operator", "approver:ann", delegator, `agent:${target}`].includes(by);
  }

  /** Null if the principal may cancel, answer and message the delegation. */
  mayControl(by: string, item: Item): Refusal | null {
    if (!this.sees(by, item)) return { code: "delegation_not_found" };
    return ["operator", "approver:ann", item.delegator].includes(by) ? null : { code: "forbidden" };
  }

  /** Null if the table allows the move from this state. */
  mayMove(name: MoveName, item: Item): Refusal | null {
    const move: Move = MOVES[name];
    if (move.from.includes(item.state)) return null;
    return { code: isTerminal(item.state) ? "already_finished" : "wrong_state" };
  }

  /** Null if this is the live lease, and the principal's own. A lapsed one is first reclaimed, as a call on it does. */
  mayWork(by: string, { item, fence }: Held): Refusal | null {
    if (by !== "operator" && !by.startsWith("agent:")) return { code: "forbidden" };
    if (by !== "operator" && by !== `agent:${item.target}`) return { code: "lease_unknown" };
    if (item.lapsed === fence && item.state === "submitted") this.#reclaim(item);
    if (item.lease && item.fence === fence) return null;
    return { code: "lease_lost", reason: item.ends.get(fence) };
  }

  ancestors(item: Item | null): Item[] {
    return item === null ? [] : [item, ...this.ancestors(item.parent)];
  }

  submit(request: Submitted): Item {
    const {
      id,
      target,
      delegator,
      parent = null,
      context = null,
      priority,
      maxAttempts,
      delay = 0,
    } = request;
    const readyAt = this.now + delay;
    const latest = parent?.deadlineAt ?? Number.POSITIVE_INFINITY;
    const deadlineAt = Math.min(readyAt + (request.ttl ?? DEFAULT_TTL), latest);
    const item: Item = {
      id,
      target,
      delegator,
      parent,
      context,
      priority,
      maxAttempts,
      startBy: request.startWithin === undefined ? null : readyAt + request.startWithin,
      createdAt: this.now,
      deadlineAt,
      state: "submitted",
      version: 0,
      attempt: 1,
      fence: 0,
      ends: new Map(),
      lease: null,
      lastLease: null,
      lapsed: null,
      readyAt,
      queued: false,
      lost: false,
      place: 0,
      returned: false,
      line: this.ancestors(parent).some((above) => above.target === target) ? 0 : null,
      behind: null,
      checkAt: readyAt + CHECK,
      releases: 0,
      ttl: deadlineAt - readyAt,
      open: null,
      votes: null,
      awaits: null,
      questions: [],
      asked: new Map(),
      used: new Map(),
      said: new Map(),
      unseen: [],
      closed: null,
      history: 0,
      usage: [],
      artifacts: 0,
      artifactFence: 0,
      error: null,
      isUnanswered: false,
      pushes: [],
      unpushed: new Set(),
      children: [],
      budget: request.budget ?? null,
      redriven: null,
      log: [],
    };
    if (delay === 0 && item.line === null && this.agent(target).serial) this.join(item);
    this.items.push(item);
    parent?.children.push(item);
    this.move("submit", item, { delay });
    return item;
  }

  /** Makes a move of the table; the guards have passed. */
  move(
    name: MoveName,
    item: Item,
    { to, delay = 0, error }: { to?: State; delay?: number; error?: string } = {},
  ): void {
    const move: Move = MOVES[name];
    const before = item.state;
    const { place } = item;
    const wasQueued = before === "submitted" && item.queued && !item.returned;
    count(this.made, name);
    item.state = to ?? move.to[0] ?? before;
    if (move.spends) item.attempt += 1;
    const drops = move.drops_artifacts;
    const isDropped = drops === "lapsed" && item.lapsed !== null;
    if (drops === "all" || isDropped || (drops === "own" && item.artifactFence === item.fence))
      item.artifacts = 0;
    if (move.lease === "extend") this.extend(item);
    if (move.lease === "drop" && item.lease && move.lease_lost_reason) {
      item.ends.set(item.fence, move.lease_lost_reason);
      item.lastLease = item.lease;
      item.lease = null;
      dropped(item.budget, this.now);
      item.lapsed = move.reclaimable ? item.fence : null;
    }
    if (item.state !== before) {
      item.isUnanswered = name === "expire" && item.open !== null;
      item.open = null;
      item.votes = null;
    }
    if (move.queue === "ticket") {
      item.returned = move.returned ?? false;
      item.readyAt = this.now + delay;
      item.queued = delay === 0 && item.behind === null;
      item.lost = false;
      item.place = this.#sweepPlace ?? this.#nextPlace();
    }
    const isStill = item.state === "submitted" && item.place === place;
    if (wasQueued && name !== "lease" && !isStill) this.#turns.removed(item);
    const ends = item.state !== before && isTerminal(item.state);
    if (ends) this.#ended.push(item);
    if (error !== undefined) item.error = error;
    if (move.event !== null) this.#log(move, name, item, delay);
    if (ends) this.#leave(item);
  }

  #log({ event, status: shown }: Move, name: MoveName, item: Item, delay: number): void {
    item.version += 1;
    const isBeside = ASKED.includes(item.state) && !["interrupted", "artifact"].includes(shown ?? "");
    if (isBeside) item.unpushed.add(item.version);
    const status = name === "submit" ? (delay > 0 ? "delayed" : "queued") : shown;
    const later = delay > 0 && name !== "submit" ? `+${delay}` : "";
    item.log.push(status === undefined ? `${event}` : `${event}:${status}${later}`);
  }

  /** The line of its conversation, in order. */
  #lineOf({ target, delegator, context }: Item): Item[] {
    if (context === null) return [];
    return this.items
      .filter((one) => one.target === target && one.delegator === delegator && one.context === context)
      .filter(({ line, state }) => line !== null && line > 0 && !isTerminal(state))
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  }

  lastOf(item: Item): Item | null {
    return this.#lineOf(item).at(-1) ?? null;
  }

  join(item: Item): void {
    item.behind = this.lastOf(item);
    this.#lines += 1;
    item.line = this.#lines;
    if (item.behind === null) return;
    item.queued = false;
    item.lost = false;
    item.checkAt = this.now + CHECK;
  }

  /** Whether it joins the line of its conversation when a worker would get it. */
  joinsLate(item: Item): boolean {
    return item.line === null && this.agent(item.target).serial && item.queued;
  }

  /** It has ended: if it was the first of its line, the next one is admitted. */
  #leave(item: Item): void {
    if (item.line === null || item.line === 0) return;
    const others = this.#lineOf(item);
    const before = others.findLast(({ line }) => (line ?? 0) < (item.line ?? 0)) ?? null;
    const next = others.find(({ line }) => (line ?? 0) > (item.line ?? 0));
    item.behind = null;
    if (!next?.behind) return;
    if (before) next.behind = before;
    else this.#admit(next);
  }

  #admit(item: Item): void {
    item.behind = null;
    // The broker asks for a larger budget; the answer queues it.
    if (item.state !== "submitted") return;
    if (!this.agent(item.target).serial) item.line = null;
    this.move("admit", item);
  }

  await(item: Item, left: number, limit: number | undefined): void {
    const until = limit === undefined ? item.deadlineAt : Math.min(this.now + limit, item.deadlineAt);
    const live = item.children.filter(({ state }) => !isTerminal(state));
    this.move("await", item);
    item.awaits = { children: new Set(live), until, left };
  }

  /** Counts the ends at the parents that wait for them, and cancels the children of what did not complete. */
  settleEnds(): boolean {
    let counted = false;
    for (let item = this.#ended.shift(); item; item = this.#ended.shift()) {
      const { parent } = item;
      // A cancel says itself whether it reaches them.
      if (item.state === "failed" || item.state === "rejected") {
        counted ||= item.children.length > 0;
        this.cascade(item);
      }
      if (parent?.state !== "awaiting_children" || !parent.awaits?.children.has(item)) continue;
      counted = true;
      parent.awaits.left -= 1;
      this.move(parent.awaits.left === 0 ? "resume" : "child_ended", parent);
    }
    return counted;
  }

  #nextPlace(): number {
    this.#places += 1;
    return this.#places;
  }

  extend({ lease }: Item): void {
    if (!lease) throw new Error("no lease");
    lease.expiresAt = this.now + lease.seconds;
    lease.confirmBy = null;
    lease.graces = 0;
  }

  /** For this long no gateway gave a sign of life. */
  outage(seconds: number): void {
    this.outages.push({ from: this.now, to: this.now + seconds });
    this.outages.splice(0, this.outages.length - OUTAGES);
    this.now += seconds;
  }

  /** The end of the newest outage that gives an instant one more period. */
  #endOfOutage(item: Item, at: number, period: number): number | undefined {
    if (item.lease && item.lease.graces >= LIMITS.graces.value) return undefined;
    return this.outages.findLast(({ from, to }) => from < at && at < to + period)?.to;
  }

  #grace({ lease }: Item, back: number): void {
    if (!lease) throw new Error("no lease");
    lease.graces += 1;
    lease.expiresAt = Math.max(lease.expiresAt, back + lease.seconds);
    if (lease.confirmBy !== null) lease.confirmBy = Math.max(lease.confirmBy, back + (lease.confirm ?? 0));
  }

  lose(item: Item): void {
    if (!item.returned) this.#turns.removed(item);
    item.queued = false;
    item.lost = true;
  }

  /**
   * The delegations that may be leased next: several, if one sweep queued them, or if several delegators take turns, which
   * turns.ts checks.
   */
  firsts(agent: string): Item[] {
    const { paused, maxWorking } = this.agent(agent);
    if (paused || (maxWorking !== null && this.#count(agent, "working") >= maxWorking)) return [];
    const ready = this.items.filter(
      ({ target, state, queued, budget }) =>
        target === agent && state === "submitted" && queued && !isStopped(budget, this.now),
    );
    const best = Math.min(...ready.map(rank));
    const next = ready.filter((item) => rank(item) === best);
    // New work is in order only among that of its delegator.
    const isAfter = (a: Item, b: Item) => a.place > b.place && (a.returned || a.delegator === b.delegator);
    return next.filter((item) => !next.some((other) => isAfter(item, other)));
  }

  /** The next leases of its agent are counted for those that wait now. */
  look(): void {
    this.#turns.look(this.items, this.now);
  }

  grant(item: Item, id: string, seconds: number, confirm: number | undefined): void {
    this.#turns.granted(item, this.agent(item.target).weights);
    if (this.joinsLate(item)) this.join(item);
    this.move("lease", item);
    item.fence += 1;
    item.lapsed = null;
    item.lease = {
      seconds,
      confirm,
      expiresAt: this.now + seconds,
      confirmBy: confirm === undefined ? null : this.now + confirm,
      graces: 0,
    };
    item.closed = null;
    this.leases.push({ item, fence: item.fence, id });
  }

  /** Seconds until the next try: doubled with every attempt, and with every release after the free ones. */
  backoff(round: number): number {
    return THIRD * 2 ** round;
  }

  /** Whether the open question is held: by its holder's own call, always if it has the lease. */
  isHeld({ open, lease, ...item }: Item, isHolders = false): boolean {
    if (!open || !lease) return false;
    if (isHolders || this.now < lease.expiresAt) return true;
    const back = this.#endOfOutage({ ...item, open, lease }, lease.expiresAt, lease.seconds);
    return back !== undefined && this.now < back + lease.seconds;
  }

  release(item: Item, asked: number, by: "release" | "unconfirm" = "release"): void {
    // A walk never has more failed hand-offs than are free.
    if (by === "release") item.releases += 1;
    const round = by === "release" ? item.releases - FREE_RELEASES - 1 : -1;
    this.move(by, item, { delay: Math.max(asked, round >= 0 ? this.backoff(round) : 0) });
  }

  /** Null if the newest lease may report this usage. */
  mayReport({ usage, fence }: Item, used: number | undefined): Refusal | null {
    const last = usage.at(-1);
    return used !== undefined && last?.fence === fence && used < last.now ? { code: "usage_shrinks" } : null;
  }

  report({ usage, ends, fence, attempt }: Item, used: number | undefined, isReply: boolean): void {
    if (used === undefined) return;
    count(this.made, "reported usage");
    const last = usage.at(-1);
    if (last?.fence === fence) Object.assign(last, { now: used, complete: isReply && !last.partial });
    else if (last?.attempt === attempt) {
      const between = Array.from({ length: fence - last.fence }, (_, at) => ends.get(last.fence + at));
      const partial =
        last.partial || between.some((reason) => reason !== "interrupted" && reason !== "awaiting");
      const before = last.before + last.now;
      Object.assign(last, { fence, before, now: used, partial, complete: isReply && !partial });
    } else usage.push({ attempt, fence, before: 0, now: used, partial: false, complete: isReply });
  }

  retry(item: Item): void {
    this.move("retry", item, { delay: this.backoff(item.attempt - 1) });
  }

  cancel(item: Item, cascade: boolean): void {
    this.move("cancel", item, { error: "canceled" });
    if (cascade) this.cascade(item);
  }

  /** Cancels it at the same time as others. */
  cancelBesides(item: Item): void {
    if (item.behind || item.log.at(-1) === ADMITTED) this.unsure.add(item);
    this.cancel(item, true);
  }

  /** Also goes through children that were canceled before without their own children. */
  cascade(item: Item): void {
    for (const child of lastFirst(item.children)) {
      if (!isTerminal(child.state)) this.cancelBesides(child);
      else if (child.state === "canceled") this.cascade(child);
    }
  }

  #reclaim(item: Item): void {
    item.lease = item.lastLease;
    reclaimed(item.budget);
    item.lapsed = null;
    item.behind = null;
    item.ends.delete(item.fence);
    item.attempt -= 1;
    this.move("reclaim", item);
    item.queued = false;
    item.lost = false;
    this.extend(item);
  }

  /** Makes all moves whose timers have passed. */
  sweep(): void {
    const place = this.#nextPlace();
    this.#sweepPlace = place;
    for (const item of lastFirst(this.items)) {
      const { version, behind } = item;
      this.#sweepOne(item);
      if (behind && (isTerminal(item.state) || item.open)) this.unsure.add(item);
      if (item.version !== version) item.place = place;
      const isDue = item.lost || this.now >= item.readyAt + CHECK;
      if (item.behind) this.#sweepLine(item);
      else if (item.state === "submitted" && !item.queued && isDue) {
        if (item.lost) count(this.made, "made again");
        item.queued = true;
        item.lost = false;
        item.place = place;
      }
    }
    this.settleEnds();
    this.#sweepPlace = null;
  }

  /** Without the setting, nobody waits; the longer it has waited, the less often the sweep looks. */
  #sweepLine(item: Item): void {
    if (item.state !== "submitted" || this.now < item.checkAt) return;
    item.checkAt = this.now + Math.min(CHECK_MAX, Math.max(CHECK, this.now - item.readyAt));
    if (!this.agent(item.target).serial) this.#admit(item);
  }

  /** Notes which budgets are exceeded; true if there is one. */
  settleBudgets(): boolean {
    const counted = this.items.filter(({ budget }) => budget !== null);
    for (const item of counted) {
      judgeBudget(item, this.now);
      if (isTerminal(item.state) && item.budget?.isOver) this.#cascadeToAll(item);
    }
    return counted.length > 0;
  }

  /** Also through what ended in another way. */
  #cascadeToAll(item: Item): void {
    for (const child of lastFirst(item.children)) {
      if (!isTerminal(child.state)) this.cancelBesides(child);
      this.#cascadeToAll(child);
    }
  }

  /** What follows from a step, besides; true if gateways do something about it. */
  settle(): boolean {
    const results = [this.settleBudgets(), this.settleEnds()];
    // Those that were canceled may be over their budgets.
    results.push(this.settleBudgets(), this.settleEnds());
    return results.includes(true);
  }

  #sweepBudget(item: Item, name: "overrun" | "exceed" | "ask_budget"): void {
    const { budget } = item;
    if (!budget) return;
    if (name === "overrun") noted(budget, this.now);
    if (name === "exceed") this.move(name, item, { error: "budget_exceeded" });
    else this.move(name, item, name === "ask_budget" ? { to: "input_required" } : {});
    if (name !== "ask_budget") return;
    const question = budgetQuestion(item, budget, item.version);
    const lasts = Math.min(UNIT + THIRD, item.deadlineAt - this.now);
    item.open = { question, lasts, expiresAt: this.now + lasts };
    item.questions.push(question);
    item.history += 1;
  }

  #sweepOne(item: Item): void {
    const due = (at: number | null | undefined): boolean => typeof at === "number" && this.now >= at;
    if (isTerminal(item.state)) return;
    const budget = dueOfBudget(item, this.now);
    if (due(item.deadlineAt)) this.move("expire", item, { error: "deadline_exceeded" });
    else if (item.state === "submitted" && item.fence === 0 && due(item.startBy))
      this.move("expire", item, { error: "not_picked_up" });
    else if (due(item.open?.expiresAt)) this.move("expire", item, { error: "interrupt_expired" });
    else if (budget) this.#sweepBudget(item, budget);
    else if (item.state === "awaiting_children" && due(item.awaits?.until)) this.move("resume", item);
    else if (item.lease) this.#sweepLease(item, item.lease, due);
  }

  #sweepLease(item: Item, lease: NonNullable<Item["lease"]>, due: (at: number | null) => boolean): void {
    const { confirmBy, confirm = 0, expiresAt, seconds } = lease;
    const isUnconfirmed = due(confirmBy);
    if (!isUnconfirmed && !due(expiresAt)) return;
    const back =
      isUnconfirmed && confirmBy !== null
        ? this.#endOfOutage(item, confirmBy, confirm)
        : this.#endOfOutage(item, expiresAt, seconds);
    if (back !== undefined) {
      this.move("grace", item);
      this.#grace(item, back);
    } else if (isUnconfirmed) this.release(item, 0, "unconfirm");
    else if (item.open) this.move("park_question", item);
    else {
      if (item.attempt >= item.maxAttempts) this.move("exhaust", item, { error: "attempts_exhausted" });
      else this.move("lapse", item, { delay: this.backoff(item.attempt - 1) });
    }
  }
}
