/**
 * The real broker for the walks: two gateways on one Redis, called over HTTP, and their clock. Limit: one instance
 * serves all walks of a file; each walk has its own agents.
 */
import { expect } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import type { Redis } from "../../src/redis/connect.ts";
import { isTerminal } from "../../src/schema/delegation.ts";
import { ERRORS } from "../../src/schema/errors.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { as, OPERATOR, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { keepAliveClient, type SendRequest, type ShortAnswer } from "../support/keep-alive-client.ts";
import { type Kept, keptIn } from "../support/kept.ts";
import { checkSoon, loseTicket } from "../support/lose-ticket.ts";
import { outage } from "../support/outage.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { isCounted, renumber, usedBy } from "./budgets.ts";
import type { Item, ModelAgent, Refusal } from "./item.ts";
import { ADMITTED, count, lastFirst, Model, THIRD, UNIT } from "./model.ts";

export const LEASE_SECONDS = THIRD;
export const INTERRUPT_TTL = UNIT + THIRD;
export const MAX_ATTEMPTS = 2;
const NAMES = ["lead", "scout", "smith"] as const;
const DAY_MS = 86_400_000;
/** Of the agent that gets most of the work. */
const WEIGHTS = { "caller:alice": 3 };

const spec = ({ maxWorking, maxWaiting, serial, weights, person, votes }: ModelAgent) => ({
  approvals: person ? "person" : "any",
  votes: votes && { needed: votes.needed, not_by_delegator: votes.notByDelegator },
  delegator_weights: weights,
  serial_by: serial ? "context" : null,
  limits: {
    max_attempts: MAX_ATTEMPTS,
    lease_seconds: LEASE_SECONDS,
    interrupt_ttl_seconds: INTERRUPT_TTL,
    max_working: maxWorking,
    max_waiting: maxWaiting,
  },
  backoff: { initial_ms: THIRD * 1000, factor: 2, max_ms: DAY_MS, jitter: 0 },
});

interface Spoken {
  readonly speak: SendRequest;
  readonly broker: Gateway;
}

export class Real {
  readonly #gateways: readonly Spoken[];
  readonly #clock: { offset_ms: number };
  readonly #tokens = new Map<string, string>([["operator", OPERATOR]]);
  readonly #redis: Redis;
  readonly #url: string;
  /** The bytes that each delegator keeps: as the script counted them, and as the sum over the records. */
  readonly kept: () => Promise<Kept>;
  /** Receives the push notifications. */
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
  /** How often each move was made and each error code returned, over all walks. */
  readonly counts = new Map<string, number>();
  #walks = 0;

  private constructor(
    broker: Awaited<ReturnType<typeof startBroker>>,
    gateways: readonly Spoken[],
    receiver: Awaited<ReturnType<typeof startReceiver>>,
  ) {
    this.receiver = receiver;
    this.#gateways = gateways;
    this.#clock = broker.clock;
    this.#redis = broker.redis;
    this.kept = () => keptIn(broker.redis);
    this.#url = broker.url;
  }

  static async start(): Promise<Real> {
    const first = await startBroker({ retentionMs: 3_650 * DAY_MS, callbackAllow: ["127.0.0.1"] });
    const second = await first.another();
    const real = new Real(
      first,
      [first, second].map(({ url, gateway }) => ({ speak: keepAliveClient(url), broker: gateway })),
      await startReceiver(),
    );
    for (const principal of ["caller:alice", "caller:bob", "approver:ann"]) await real.#token(principal);
    return real;
  }

  async #token(principal: string): Promise<void> {
    this.#tokens.set(principal, (await as(this.#url, principal)).token);
  }

  /** Begins a new walk, with new agents. */
  async begin(): Promise<Model> {
    this.#walks += 1;
    const agents = NAMES.map((name, at) => ({
      name: `${name}-${this.#walks}`,
      maxWorking: null,
      maxWaiting: 10_000,
      serial: true,
      weights: at === 0 ? WEIGHTS : {},
      paused: false,
      person: false,
      votes: null,
    }));
    for (const agent of agents) {
      await this.set(agent);
      await this.#token(`agent:${agent.name}`);
    }
    return new Model(this.#clock.offset_ms / 1000, agents, this.counts);
  }

  async set(agent: ModelAgent): Promise<void> {
    const { status } = await this.call(0, "operator", "PUT", `/v1/agents/${agent.name}`, spec(agent));
    expect([200, 201]).toContain(status);
  }

  async call(
    via: number,
    by: string,
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) {
    const gateway = this.#gateways[via % this.#gateways.length];
    if (!gateway) throw new RangeError("no gateway");
    const answer = await gateway.speak(this.#tokens.get(by) ?? "nobody", method, path, body, headers);
    if (answer.status >= 400) count(this.counts, codeOf(answer));
    return answer;
  }

  move(seconds: number): void {
    this.#clock.offset_ms += seconds * 1000;
  }

  /** For this long, no gateway gives a sign of life. */
  away(seconds: number): Promise<void> {
    return outage({ redis: this.#redis, clock: this.#clock }, seconds);
  }

  async sweep(via: number): Promise<void> {
    await this.#gateways[via % this.#gateways.length]?.broker.sweep.tick();
    await this.settled();
  }

  async loseTicket(via: number, { id }: Item): Promise<void> {
    const broker = this.#gateways[via % this.#gateways.length]?.broker.broker;
    if (!broker) throw new RangeError("no gateway");
    expect(await loseTicket(broker, id)).toBe(true);
    await checkSoon(broker, id);
  }

  /** Waits until all background work is done. */
  async settled(): Promise<void> {
    for (const { broker } of this.#gateways) {
      while (broker.broker.background.size > 0) await Promise.allSettled(broker.broker.background);
    }
  }

  /** Checks that the record is as in the model. `unsure`: see there. */
  async check(item: Item, { unsure }: Pick<Model, "unsure">): Promise<void> {
    const { body } = await this.read(item);
    const more = unsure.delete(item) ? body.version - item.version : 0;
    const wasAdmitted = item.log.at(-2) === ADMITTED;
    if (more === 1 || (more === -1 && wasAdmitted)) {
      item.version += more;
      if (more > 0) item.log.splice(-1, 0, ADMITTED);
      else item.log.splice(-2, 1);
      renumber(item);
    }
    compare(item, body);
  }

  read({ id, version }: Item): Promise<ShortAnswer> {
    return this.call(version, "operator", "GET", `/v1/delegations/${id}`);
  }

  /** Checks that what the tree has used is as in the model, and whether that is too much. */
  async checkBudget(item: Item): Promise<void> {
    const { budget } = (await this.call(0, "operator", "GET", `/v1/delegations/${item.id}`)).body;
    expect(budget === undefined).toBe(!isCounted(item));
    if (!isCounted(item)) return;
    expect(budget.used.tokens).toBe(usedBy(item));
    if (item.budget) expect(budget.exceeded ?? false).toBe(item.budget.isOver);
  }

  /** Checks that the whole event stream is as in the model. */
  async checkEvents(item: Item): Promise<void> {
    const events = await eventsOf(
      {
        events: (id: string, query: string) =>
          this.call(0, "operator", "GET", `/v1/delegations/${id}/events${query}`),
      },
      item.id,
    );
    checkHistory(events, isTerminal(item.state) ? "finished" : "live");
    expect(events.map(line)).toEqual(item.log);
  }

  /** Checks that each push config's receiver got every event since the config was created, once and in order. */
  async checkPushes({ id, pushes, version, unpushed }: Item): Promise<void> {
    const head = `evt_${id}_`;
    for (const { path, from, until: last } of pushes) {
      const ids = () =>
        this.receiver.received
          .filter((one) => one.path === path)
          .map(({ headers }) => String(headers["webhook-id"]).slice(head.length));
      const seqs = () => ids().map((one) => Number(one.split("_")[0]));
      const pushed = (to: number) =>
        Array.from({ length: to - from + 1 }, (_, at) => from + at).filter((seq) => !unpushed.has(seq));
      const newest = pushed(version).at(-1);
      if (last === null && newest !== undefined) await until(() => seqs().includes(newest));
      const shown = seqs();
      expect(new Set(ids()).size).toBe(shown.length);
      const end = last === null ? (newest ?? from - 1) : (shown.at(-1) ?? from - 1);
      expect(end).toBeLessThanOrEqual(last ?? version);
      expect([...new Set(shown)]).toEqual(pushed(end));
      expect(shown).toEqual([...shown].sort((a, b) => a - b));
    }
  }

  /** Ends the walk: deletes the agents, which cancels their work, and compares every record and stream. */
  async end(model: Model): Promise<void> {
    await this.settled();
    for (const item of model.items) {
      await this.check(item, model);
      await this.checkBudget(item);
    }
    // The deletion of an agent cancels its work in an order of its own, and a wait ends with the children.
    for (const item of model.items) {
      if (item.state !== "awaiting_children") continue;
      await this.call(0, "operator", "POST", `/v1/delegations/${item.id}/cancel`, { cascade: true });
      model.cancel(item, true);
      model.settle();
      await this.settled();
    }
    for (const agent of model.agents) {
      const path = `/v1/agents/${agent.name}`;
      const busy = model.items.some(({ target, state }) => target === agent.name && !isTerminal(state));
      if (busy) expect((await this.call(0, "operator", "DELETE", path)).body.code).toBe("agent_busy");
      expect((await this.call(1, "operator", "DELETE", `${path}?force=true`)).status).toBe(204);
      await this.settled();
      for (const item of lastFirst(model.items)) {
        if (item.target === agent.name && !isTerminal(item.state)) model.cancelBesides(item);
      }
      model.settleBudgets();
    }
    for (const item of model.items) {
      await this.check(item, model);
      await this.checkEvents(item);
      await this.checkPushes(item);
    }
    this.receiver.received.length = 0;
  }
}

/** The code of a refusal, in REST's or A2A's form. */
export const codeOf = ({ body }: ShortAnswer): string => body.code ?? body.error.details[0].metadata.code;

const seconds = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 1000;
/**
 * Durations are whole thirds. One that a deadline cuts off also includes the real time of the run, so it is rounded.
 */
const inThirds = (span: number): number => Math.round(span / THIRD) * THIRD;

function line(event: DelegationEvent): string {
  const { type, status, at } = event;
  const later = "retry_at" in event && event.retry_at ? `+${seconds(at, event.retry_at)}` : "";
  return status === undefined ? type : `${type}:${status}${later}`;
}

/** Each attempt up to the newest lease ended with a reply that reported its usage. */
const isWhole = ({ usage, fence }: Item): boolean =>
  usage.at(-1)?.fence === fence && usage.every(({ attempt, complete }, at) => complete && attempt === at + 1);

/** Checks that an answered delegation is as in the model. */
export function compare(item: Item, body: ShortAnswer["body"]): void {
  expect({
    state: body.state,
    version: body.version,
    attempt: body.attempt,
    max_attempts: body.max_attempts,
    isHeld: body.lease !== null,
    awaits: body.awaits?.left ?? null,
    behind: body.behind ?? null,
    interrupt_id: body.interrupt?.id ?? null,
    requests: body.interrupt?.requests.map((one: { request_id: string }) => one.request_id) ?? [],
    votes: (body.interrupt?.votes?.given ?? []).map(({ by }: { by: string }) => by),
    history: body.history?.length,
    artifacts: body.artifacts?.length,
    error: body.error?.code ?? null,
    isUnanswered: body.error?.told !== undefined,
    usage: body.usage?.attempts ?? [],
    used: body.usage?.total.input_tokens ?? 0,
    limit: body.budget?.limit?.tokens ?? null,
    isWhole: body.usage?.total.complete ?? false,
    delegator: body.delegator,
    parent_id: body.parent_id,
    lives: inThirds(seconds(body.created_at, body.deadline_at)),
    asks:
      body.interrupt === null ? null : inThirds(seconds(body.interrupt.raised_at, body.interrupt.expires_at)),
  }).toEqual({
    state: item.state,
    version: item.version,
    attempt: item.attempt,
    max_attempts: item.maxAttempts,
    isHeld: item.lease !== null,
    behind: item.behind?.id ?? null,
    awaits: item.state === "awaiting_children" ? (item.awaits?.left ?? 0) : null,
    interrupt_id: item.open?.question.id ?? null,
    requests: item.open?.question.requests ?? [],
    votes: item.votes?.by ?? [],
    history: item.history,
    artifacts: item.artifacts,
    error: item.error,
    isUnanswered: item.isUnanswered,
    usage: item.usage.map(({ attempt, before, now, complete }) => ({
      ...{ attempt, input_tokens: before + now, complete },
    })),
    limit: item.budget?.tokens ?? null,
    used: item.usage.reduce((sum, { before, now }) => sum + before + now, 0),
    isWhole: isWhole(item),
    delegator: item.delegator,
    parent_id: item.parent?.id ?? null,
    lives: inThirds(item.deadlineAt - item.createdAt),
    asks: item.open?.lasts ?? null,
  });
}

/** Checks that the answer is the model's refusal, or has the status if the model has none. */
export function judge(answer: ShortAnswer, refusal: Refusal | null, status = 200): void {
  const shown = {
    status: answer.status,
    code: answer.body?.code ?? null,
    reason: answer.body?.details?.reason ?? null,
  };
  expect(shown).toEqual(
    refusal === null
      ? { status, code: null, reason: null }
      : { status: ERRORS[refusal.code].status, code: refusal.code, reason: refusal.reason ?? null },
  );
}
