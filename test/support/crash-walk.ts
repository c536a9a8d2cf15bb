/**
 * The walk of the tests that kill a gateway before each of its commands to Redis, one after the other, in a verb. In every
 * second round that leaves waiting work, its tickets are deleted as well, so the sweep has to make them again.
 */
import { expect } from "vitest";
import { client, startBroker, type TestBroker } from "./broker.ts";
import { keysIn } from "./dump.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { checkHistory, eventsOf } from "./history.ts";
import { loseTicket } from "./lose-ticket.ts";
import { fieldOf } from "./record.ts";
import { until } from "./until.ts";

export type Api = ReturnType<typeof client>;
export interface Made {
  readonly id: string;
  readonly lease: string;
  /** The id of an open question. */
  readonly question?: string;
}
export interface Verb<M extends Made = Made> {
  /** True if work waits afterwards, at whatever command the gateway dies. */
  readonly waits?: true;
  /** Settings of the agent beside those of every walk. */
  readonly agent?: object;
  /** Prepares a delegation for the verb; returns its id and lease, if the verb needs them. */
  readonly prepare: (api: Api, broker: TestBroker) => Promise<M>;
  /** The request during which the gateway dies. */
  readonly act: (api: Api, made: M) => Promise<{ status: number; body: { id?: string } }>;
  /** Whether the gateway has also done what it does after its answer; absent: it does nothing then. */
  readonly isDone?: (broker: TestBroker, made: M) => Promise<boolean>;
  /** Once all work has ended: what else must hold. `ids`: of all delegations; `survived`: the gateway was not killed. */
  readonly check?: (walk: {
    readonly api: Api;
    readonly broker: TestBroker;
    readonly made: M;
    readonly ids: readonly string[];
    readonly survived: boolean;
  }) => Promise<void>;
}

const AGENT = { backoff: { initial_ms: 0 }, limits: { max_attempts: 5 } };
const MAX_COMMANDS = 40;

export async function crashWalk<M extends Made>(verb: Verb<M>): Promise<void> {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", { ...AGENT, ...verb.agent });
  let survived = false;
  let kills = 0;
  let losses = 0;
  let spared = true;

  for (let n = 1; !survived; n += 1) {
    expect(n).toBeLessThan(MAX_COMMANDS);
    broker.clock.offset_ms = 0;
    const victim = await startGatewayProcess(broker.db);
    const made = await verb.prepare(api, broker);
    // Its token and agent are cached, so the walk starts with the verb's own commands.
    await client(victim.url).call("GET", "/v1/agents/scout");
    await victim.arm(n);
    const answer = await verb.act(client(victim.url), made).catch(() => null);
    const isDone = async () => answer === null || (await verb.isDone?.(broker, made)) !== false;
    await until(async () => !victim.isAlive() || (await isDone()));
    survived = victim.isAlive() && answer !== null;
    if (!survived) kills += 1;
    await victim.kill();

    const waiting = await waitingIds(broker);
    const lost = spared ? waiting : [];
    if (waiting.length > 0) spared = !spared;
    for (const id of lost) await loseTicket(broker.gateway.broker, id);
    const madeBefore = await madeAgain(broker);
    const accepted = answer?.status === 202 ? String(answer.body.id) : made.id;
    await drive(broker, api);
    expect(await madeAgain(broker)).toBeGreaterThanOrEqual(madeBefore + lost.length);
    losses += lost.length;
    const ids = await allIds(broker);
    for (const id of ids) checkHistory(await eventsOf(api, id), "finished");
    await verb.check?.({ api, broker, made, ids, survived });
    if (accepted !== "") expect((await api.get(accepted)).status).toBe(200);
    await broker.redis.del("{errand:0}:events");
    for (const id of await allIds(broker)) await broker.redis.del(keyOf(id));
  }
  expect(kills).toBeGreaterThan(0);
  if (verb.waits) expect(losses).toBeGreaterThan(0);
}

/** Those that have a ticket, or should: not those behind another one in a line. */
async function waitingIds({ redis }: TestBroker): Promise<string[]> {
  const ids = await redis.zrange("{errand:0}:live:scout:submitted", "0", "-1");
  const behind = await Promise.all(ids.map((id) => fieldOf(redis, keyOf(id), "behind")));
  return ids.filter((_, at) => behind[at] === undefined);
}

export const keyOf = (id: string): string => `{errand:0}:d:${id}`;

/** How many tickets the surviving gateway has made again so far. */
async function madeAgain({ gateway }: TestBroker): Promise<number> {
  const { values } = await gateway.broker.metrics.ticketsRemade.get();
  return values[0]?.value ?? 0;
}

async function allIds(broker: TestBroker): Promise<string[]> {
  const keys = await keysIn(broker.redis, "{errand:0}:d:*");
  return keys.map((key) => key.slice("{errand:0}:d:".length)).filter((id) => !id.includes(":"));
}

/** The surviving gateway sweeps and a worker works, and the clock advances, until no delegation is live. */
async function drive(broker: TestBroker, api: Api): Promise<void> {
  for (let round = 0; round < 30; round += 1) {
    broker.clock.offset_ms += 61_000;
    await broker.gateway.sweep.tick();
    const { body } = await api.lease("scout", { wait_seconds: 0, max: 32 });
    for (const lease of body.leases) await api.reply(lease.lease_id);
    for (const id of await broker.redis.zrange("{errand:0}:live:scout:interrupted", "0", "-1")) {
      const { interrupt } = (await api.get(id)).body;
      if (interrupt) await api.answer(id, interrupt.id, { text: "yes" });
    }
    const { counts } = (await api.call("GET", "/v1/agents/scout")).body;
    if (counts.waiting + counts.delayed + counts.working + counts.interrupted === 0) {
      // The queue also contains no ticket that was taken and never consumed.
      expect(await broker.redis.llen("{errand:0}:q:scout:active")).toBe(0);
      return;
    }
  }
  throw new Error("a delegation hangs");
}
