/**
 * Kills a gateway before each of its commands to Redis, one after the other, in every verb that writes. In every
 * second round that leaves waiting work, its tickets are deleted as well, so the sweep has to make them again.
 */
import { describe, expect, test } from "vitest";
import { client, startBroker, type TestBroker } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { loseTicket } from "../support/lose-ticket.ts";

type Api = ReturnType<typeof client>;
interface Made {
  readonly id: string;
  readonly lease: string;
  /** The id of an open question. */
  readonly question?: string;
}
interface Verb {
  /** True if work waits afterwards, at whatever command the gateway dies. */
  readonly waits?: true;
  /** Prepares a delegation for the verb; returns its id and lease, if the verb needs them. */
  readonly prepare: (api: Api, broker: TestBroker) => Promise<Made>;
  /** The request during which the gateway dies. */
  readonly act: (api: Api, made: Made) => Promise<{ status: number; body: { id?: string } }>;
}

const AGENT = { backoff: { initial_ms: 0 }, limits: { max_attempts: 5 } };
const MAX_COMMANDS = 40;

const nothing = async () => ({ id: "", lease: "" });
const submitted = async (api: Api) => ({ id: String((await api.delegate("scout")).body.id), lease: "" });
const leased = async (api: Api) => {
  const { id } = await submitted(api);
  const { body } = await api.lease("scout");
  expect(body.leases[0].delegation.id).toBe(id);
  return { id, lease: String(body.leases[0].lease_id) };
};

/** Its lease has lapsed, so the next call of its holder reclaims it. */
const lapsed = async (api: Api, { clock, gateway }: TestBroker) => {
  const made = await leased(api);
  clock.offset_ms = 61_000;
  await gateway.sweep.tick();
  expect((await api.get(made.id)).body).toMatchObject({ state: "submitted", attempt: 2 });
  return made;
};

/** Its question is held. */
const held = async (api: Api) => {
  const made = await leased(api);
  const { body } = await api.interrupt(made.lease, HELD);
  expect(body).toHaveProperty("held_until");
  return { ...made, question: String(body.interrupt_id) };
};
const HELD = { text: "May I?", request_id: "may", hold: true };

const VERBS: Record<string, Verb> = {
  delegate: { waits: true, prepare: nothing, act: (api) => api.delegate("scout") },
  lease: { prepare: submitted, act: (api) => api.lease("scout", { wait_seconds: 1 }) },
  progress: { prepare: leased, act: (api, { lease }) => api.heartbeat(lease, { progress: { done: 1 } }) },
  release: { waits: true, prepare: leased, act: (api, { lease }) => api.release(lease) },
  "late reply": { prepare: lapsed, act: (api, { lease }) => api.reply(lease) },
  complete: { prepare: leased, act: (api, { lease }) => api.reply(lease) },
  "reply with next": {
    prepare: leased,
    act: (api, { lease }) => api.reply(lease, { next: { wait_seconds: 0 } }),
  },
  retry: {
    prepare: leased,
    act: (api, { lease }) =>
      api.reply(lease, {
        state: "failed",
        text: "x",
        error: { code: "busy", message: "x", retryable: true },
      }),
  },
  "hold a question": { prepare: leased, act: (api, { lease }) => api.interrupt(lease, HELD) },
  "answer a held question": {
    prepare: held,
    act: (api, { id, question = "" }) => api.answer(id, question, { text: "yes" }),
  },
  "park a held question": {
    prepare: held,
    act: (api, { lease }) => api.interrupt(lease, { ...HELD, hold: false }),
  },
  "cancel waiting": { prepare: submitted, act: (api, { id }) => api.cancel(id) },
  "cancel working": { prepare: leased, act: (api, { id }) => api.cancel(id) },
};

describe.each(Object.entries(VERBS))("%s", (_name, verb) => {
  test("killed before any command: accepted work is not lost, nothing hangs, no event appears twice", async () => {
    const broker = await startBroker();
    const api = client(broker.url);
    await api.agent("scout", AGENT);
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
      for (const id of await allIds(broker)) checkHistory(await eventsOf(api, id), "finished");
      if (accepted !== "") expect((await api.get(accepted)).status).toBe(200);
      await broker.redis.del("{errand:0}:events");
      for (const id of await allIds(broker)) await broker.redis.del(`{errand:0}:d:${id}`);
    }
    expect(kills).toBeGreaterThan(0);
    if (verb.waits) expect(losses).toBeGreaterThan(0);
  }, 240_000);
});

function waitingIds({ redis }: Awaited<ReturnType<typeof startBroker>>): Promise<string[]> {
  return redis.zrange("{errand:0}:live:scout:submitted", "0", "-1");
}

/** How many tickets the surviving gateway has made again so far. */
async function madeAgain({ gateway }: Awaited<ReturnType<typeof startBroker>>): Promise<number> {
  const { values } = await gateway.broker.metrics.ticketsRemade.get();
  return values[0]?.value ?? 0;
}

async function allIds(broker: Awaited<ReturnType<typeof startBroker>>): Promise<string[]> {
  const keys = await keysIn(broker.redis, "{errand:0}:d:*");
  return keys.map((key) => key.slice("{errand:0}:d:".length)).filter((id) => !id.includes(":"));
}

/** The surviving gateway sweeps and a worker works, and the clock advances, until no delegation is live. */
async function drive(broker: Awaited<ReturnType<typeof startBroker>>, api: Api): Promise<void> {
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
