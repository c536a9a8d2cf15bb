/**
 * The cost that a principal with a heavy load causes for another: a cycle, a read and the expiry of a lease of one tenant,
 * alone and beside each kind of heavy work of another. Limit: the heavy process runs on the same cores, so the machine
 * causes a part of the delay.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { LIMITS } from "../../src/schema/limits.ts";
import { type Figure, figure } from "../figures.ts";
import { Gateway, type Poll } from "../gateway.ts";
import { HEAVY, type Heavy } from "../heavy.ts";
import { quantile } from "../numbers.ts";
import type { Options } from "../options.ts";
import { filler } from "../payload.ts";
import { Remote } from "../remote.ts";
import type { Stage } from "../stage.ts";
import { clock } from "../tally.ts";

/** Stored for the heavy principal, to be listed and replayed. */
const KEPT = 300;
const KEPT_BYTES = 50_000;
const CHILDREN = 2_000;
const EVERY_MS = 10;
const LEASE_SECONDS = 1;

const createdSchema = z.object({ id: z.string() });
const leasesSchema = z.object({
  leases: z.array(
    z.object({ lease_id: z.string(), expires_at: z.string(), delegation: z.object({ id: z.string() }) }),
  ),
});
const endedSchema = z.object({ state: z.string(), finished_at: z.string().nullable() });

interface Tenant {
  readonly gateway: Gateway;
  readonly caller: string;
  readonly worker: Poll;
  readonly lapsing: Poll;
}

interface Delays {
  readonly cycle: number[];
  readonly get: number[];
  readonly expiry: number[];
}

async function timed(times: number[], work: () => Promise<unknown>): Promise<void> {
  const since = clock();
  await work();
  times.push(clock() - since);
}

async function cycle({ gateway, caller, worker }: Tenant): Promise<string> {
  const { agent, token } = worker;
  const poll = gateway.call("POST", `/v1/agents/${agent}/leases`, { wait_seconds: 60 }, token);
  const { id } = createdSchema.parse(
    await gateway.call("POST", "/v1/delegations", { target: agent, task: "x" }, caller),
  );
  const [lease] = leasesSchema.parse(await poll).leases;
  await gateway.call("POST", `/v1/leases/${lease?.lease_id}/reply`, { state: "completed", text: "y" }, token);
  return id;
}

/** The delay, in ms, until the broker notices that a lease without heartbeats has expired. */
async function expiry({ gateway, caller, lapsing: { agent, token } }: Tenant): Promise<number> {
  const task = { target: agent, task: "x", max_attempts: 1 };
  await gateway.call("POST", "/v1/delegations", task, caller);
  const asked = { wait_seconds: 60, lease_seconds: LEASE_SECONDS };
  const [lease] = leasesSchema.parse(
    await gateway.call("POST", `/v1/agents/${agent}/leases`, asked, token),
  ).leases;
  const path = `/v1/delegations/${lease?.delegation.id}?wait_seconds=60`;
  const { finished_at } = endedSchema.parse(await gateway.call("GET", path, undefined, caller));
  return Date.parse(finished_at ?? "") - Date.parse(lease?.expires_at ?? "");
}

async function measure(tenant: Tenant, seconds: number): Promise<Delays> {
  const delays: Delays = { cycle: [], get: [], expiry: [] };
  const end = clock() + seconds * 1000;
  const cycles = async () => {
    do {
      let id = "";
      await timed(delays.cycle, async () => {
        id = await cycle(tenant);
      });
      await timed(delays.get, () =>
        tenant.gateway.call("GET", `/v1/delegations/${id}`, undefined, tenant.caller),
      );
      await sleep(EVERY_MS);
    } while (clock() < end);
  };
  const expiries = async () => {
    do delays.expiry.push(await expiry(tenant));
    while (clock() < end);
  };
  await Promise.all([cycles(), expiries()]);
  for (const times of [delays.cycle, delays.get, delays.expiry]) times.sort((a, b) => a - b);
  return delays;
}

async function keepSome(gateway: Gateway, { agent }: Poll, token: string, count: number): Promise<void> {
  const task = filler(KEPT_BYTES);
  for (let made = 0; made < count; made += 10) {
    const delegations = Array.from({ length: 10 }, () => ({ target: agent, task }));
    await gateway.call("POST", "/v1/delegations/batch", { delegations }, token);
  }
}

export async function fair(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  await stage.fsync("always");
  const gateway = await Gateway.start(stage);
  const heavy = new Remote("heavy");
  try {
    const [worker, lapsing] = await gateway.agents(2, "light");
    const [loaded, idle] = await gateway.agents(2, "heavy");
    if (!worker || !lapsing || !loaded || !idle) throw new Error("no agents");
    const tenant = { gateway, caller: await gateway.token("caller:light"), worker, lapsing };
    const caller = await gateway.token("caller:heavy");
    const isShort = options.seconds < 1;
    await keepSome(gateway, loaded, caller, isShort ? 10 : KEPT);
    // The first round compiles the code and is not counted.
    await measure(tenant, options.warmup);
    const kinds: Record<string, readonly Heavy[]> = { nothing: [] };
    if (!isShort) for (const kind of HEAVY) kinds[kind] = [kind];
    kinds.all = HEAVY;
    const figures: Figure[] = [];
    for (const [beside, some] of Object.entries(kinds)) {
      await heavy.tell("start", {
        ...{ url: gateway.url, operator: gateway.operator, caller, agent: loaded.agent, idle, kinds: some },
        children: isShort ? 100 : CHILDREN,
        polls: isShort ? 50 : LIMITS.polls.value,
      });
      await sleep(options.warmup * 1000);
      const delays = await measure(tenant, options.seconds);
      const statuses = await heavy.ask("stop", z.record(z.string(), z.number()));
      say(`fair beside ${beside}: ${JSON.stringify(statuses)}`);
      for (const name of ["cycle", "get", "expiry"] as const) {
        const times = delays[name];
        const more = { beside, p50: Math.round(quantile(times, 0.5) * 10) / 10, count: times.length };
        figures.push(figure(`fair_${name}_p99_ms`, "ms", [quantile(times, 0.99)], more));
      }
    }
    return figures;
  } finally {
    await heavy.end();
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
}
