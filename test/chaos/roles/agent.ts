/**
 * Workers over plain HTTP, for every polling agent. The seed and the work's own key decide what a worker does with
 * it, whichever worker that is. Leases last seconds, so that abandoned ones lapse within the run.
 */
import * as z from "zod";
import { isTerminal, stateSchema } from "../../../src/schema/delegation.ts";
import { Random } from "../random.ts";
import type { Facts } from "../rows.ts";
import { ACTIONS, ARGUMENT_BELOW, COUNCIL, keyOf, SHELF, taskOf } from "../setup.ts";
import { type Part, shown, shownSchema } from "./part.ts";

const grantSchema = z.object({
  lease_id: z.string(),
  attempt: z.number(),
  awaited: z
    .object({
      outcome: z.string(),
      children: z.array(z.looseObject({ state: stateSchema.nullable() })),
    })
    .optional(),
  delegation: z.looseObject({
    id: z.string(),
    lease: z.object({ granted_at: z.string() }),
    budget: z.looseObject({}).optional(),
    message: z.looseObject({ parts: z.array(z.looseObject({ text: z.string().optional() })) }),
    history: z.array(z.looseObject({ role: z.string(), metadata: z.looseObject({}).optional() })),
  }),
});
export const grantsSchema = z.object({ leases: z.array(grantSchema) });
type Grant = z.infer<typeof grantSchema>;

export const fenceOf = (lease: string): number => Number(lease.slice(lease.lastIndexOf("_") + 1));

export const grantFacts = (body: unknown): Facts => ({
  grants: grantsSchema.parse(body).leases.map(({ lease_id, attempt, delegation, awaited }) => ({
    id: delegation.id,
    lease: lease_id,
    fence: fenceOf(lease_id),
    attempt,
    granted_at: Date.parse(delegation.lease.granted_at),
    ...(awaited?.outcome === "ended" && {
      unended: awaited.children.filter(({ state }) => state !== null && !isTerminal(state)).length,
    }),
  })),
});

const BEHAVIORS = {
  quick: 55,
  steady: 14,
  pieces: 8,
  ask: 12,
  lead: 6,
  retry: 4,
  twice: 4,
  fail: 2,
  reject: 1,
  release: 3,
  silent: 1,
  late: 1,
} as const;

/** Under a budget: what reports often. */
const SPENDING = {
  quick: 30,
  steady: 35,
  ask: 10,
  lead: 15,
  retry: 4,
  twice: 3,
  silent: 2,
  late: 1,
} as const;

/** The id of the request of its questions. */
const ASKED = "may";

export async function runAgent(part: Part): Promise<void> {
  const { agents, slots } = part.setup;
  await Promise.all(
    Array.from({ length: slots }, async (_, slot) => {
      const agent = agents[slot % agents.length];
      if (agent !== undefined) await serve(part, agent, slot);
    }).concat(shelf(part), serve(part, COUNCIL, -2), serve(part, COUNCIL, -3)),
  );
}

async function shelf(part: Part): Promise<void> {
  while (!part.shelf && !part.finished) await part.sleep(100);
  await serve(part, SHELF, -1);
}

async function serve(part: Part, agent: string, slot: number): Promise<void> {
  const { proc, leaseSeconds } = part.setup;
  while (!part.finished) {
    const answer = await part.call(
      "lease",
      { target: agent },
      {
        as: `agent:${agent}`,
        path: `/v1/agents/${agent}/leases`,
        holdSeconds: part.setup.pollSeconds,
        body: {
          wait_seconds: part.setup.pollSeconds,
          max: part.random.chance(0.2) ? 3 : 1,
          lease_seconds: leaseSeconds,
          worker_id: `${proc}.${slot}`,
          ...(part.random.chance(0.3) && { confirm_within_seconds: 1 }),
        },
      },
      grantFacts,
    );
    if (answer.phase !== "ok") await part.sleep(part.random.between(50, 300));
    else await Promise.all(grantsSchema.parse(answer.body).leases.map((grant) => work(part, agent, grant)));
  }
}

async function work(part: Part, agent: string, grant: Grant): Promise<void> {
  const { delegation, lease_id: lease } = grant;
  const { id } = delegation;
  const key = keyOf(delegation.message.parts[0]?.text ?? "");
  const fence = fenceOf(lease);
  const facts = { id, lease, fence, key };
  const random = new Random(part.setup.seed, `${key}/${fence}`);
  const as = `agent:${agent}`;
  const path = (verb: string) => `/v1/leases/${lease}/${verb}`;
  const answered = delegation.history.find(({ metadata }) => metadata?.interrupt_id !== undefined);

  const isSpending = delegation.budget !== undefined;
  const ofAgent = agent === COUNCIL ? "ask" : part.setup.behavior;
  const drawn = ofAgent ?? random.weighted<string>(isSpending ? SPENDING : BEHAVIORS);
  const asks = drawn === "ask" && !isChild(key);
  const hasWaited = grant.awaited !== undefined;
  const isOver = asks ? answered !== undefined || fence > 2 : drawn === "lead" && hasWaited;
  const behavior = isOver || (isChild(key) && ["ask", "lead"].includes(drawn)) ? "quick" : drawn;

  let tokens = 0;
  /** Under a budget, a part of what is reported is new each time. */
  const spend = () => {
    if (delegation.budget === undefined) return {};
    tokens += random.int(0, 30);
    return { usage: { input_tokens: tokens } };
  };
  /** With a usage it is repeated until its outcome is known. */
  const heartbeat = (more: object = {}) => {
    const body = { ...more, ...spend() };
    const request = { as, path: path("heartbeat"), body };
    return "usage" in body
      ? part.insist("heartbeat", { ...facts, tokens }, request)
      : part.call("heartbeat", facts, request);
  };
  let last: ReturnType<typeof spend> | undefined;
  const reply = (state: string, more: object = {}) => {
    const text = `${state} ${key} ${fence}`;
    // A repeated reply has the same usage.
    last ??= random.chance(0.8) ? spend() : {};
    const body = { state, text, ...more, ...last };
    const wants = behavior === "retry" ? "retry" : state;
    return part.insist(
      "reply",
      { ...facts, text, wants, ...("usage" in body && { tokens }) },
      { as, path: path("reply"), body },
      replyFacts,
    );
  };

  /** Several calls, as if several tools ran at once, each with its key. */
  const use = async (interrupt_id: string) => {
    for (const use_key of random.chance(0.3) ? ["one", "two"] : ["one"]) {
      const body = { interrupt_id, request_id: ASKED, use_key };
      const about = { ...facts, asked: `${interrupt_id} ${ASKED}`, use_key };
      await part.insist("use", about, { as, path: path("use"), body }, usedFacts);
    }
  };
  if (asks && answered) await use(String(answered.metadata?.interrupt_id));

  switch (behavior) {
    case "steady":
      for (let done = 1; done <= random.int(1, 4); done += 1) {
        await part.sleep(random.between(200, part.setup.leaseSeconds * 400));
        const { phase, body } = await heartbeat({ progress: { message: `step ${done}`, done } });
        if (phase === "fail") return;
        const isOver = beatSchema.safeParse(body).data?.budget?.exceeded === true;
        // Otherwise it goes on, as a worker that does not look.
        if (isOver && random.chance(0.7)) {
          await part.insist("release", facts, { as, path: path("release"), body: { reason: "too much" } });
          return;
        }
      }
      await reply("completed");
      return;
    case "pieces":
      for (let piece = 0; piece < random.int(1, 4); piece += 1) {
        const artifact = { artifactId: "a", parts: [{ text: `${key} ${piece}` }] };
        const { phase } = await part.call("artifact", facts, {
          as,
          path: path("artifacts"),
          body: { artifact, append: piece > 0 },
        });
        if (phase === "fail") return;
      }
      await reply("completed");
      return;
    case "ask": {
      const body = questionOf(part, agent, key);
      const ask = (hold: boolean) =>
        part.insist("interrupt", facts, { as, path: path("interrupt"), body: { ...body, hold } });
      const holds = random.chance(0.6);
      let raised = await ask(holds);
      if (!holds) return;
      for (let beats = random.int(0, 6); beats > 0 && raised.phase !== "fail"; beats -= 1) {
        const held = await heartbeat({ wait_seconds: 0.5 });
        if (held.phase === "fail") return;
      }
      raised = await ask(false);
      const { data } = raisedSchema.safeParse(raised.body);
      if (data?.answers === undefined) return;
      await use(data.interrupt_id);
      await reply("completed");
      return;
    }
    case "lead": {
      const children = await delegateParts(part, agent, { id, key });
      if (children === null) return;
      if (delegation.budget !== undefined) await heartbeat();
      const raised = await part.insist("await", facts, {
        ...{ as, path: path("await") },
        body: { children, ...(random.chance(0.3) && { time_limit_seconds: 2 }) },
      });
      const isKnown = awaitSchema.safeParse(raised.body).data?.awaited !== undefined;
      if (raised.phase === "ok" && isKnown) await reply("completed");
      return;
    }
    case "retry":
      await reply("failed", { error: { code: "flaky", message: "try again", retryable: true } });
      return;
    case "twice":
      await Promise.all([reply("completed"), reply("completed")]);
      await reply("completed");
      return;
    case "fail":
      await reply("failed", { error: { code: "broken", message: "it does not go", retryable: false } });
      return;
    case "reject":
      await reply("rejected");
      return;
    case "release":
      await part.insist("release", facts, { as, path: path("release"), body: { reason: "not now" } });
      return;
    case "silent":
      await heartbeat();
      return;
    case "late":
      await part.sleep(part.setup.leaseSeconds * 1000 + random.between(1_000, 3_000));
      await reply("completed");
      return;
    default:
      await part.sleep(random.between(0, 80));
      await reply("completed");
  }
}

/** The same at every lease. Often it proposes actions, which rules may decide. */
function questionOf(part: Part, agent: string, key: string): object {
  const random = new Random(part.setup.seed, `${key}/question`);
  const kind = random.chance(0.8) || agent === COUNCIL ? "input" : "auth";
  const own = { text: "May I?", request_id: ASKED };
  if (agent !== COUNCIL && random.chance(0.25)) return { kind, ...own };
  const action = () => ({
    name: random.pick(ACTIONS),
    arguments: { n: random.int(0, ARGUMENT_BELOW - 1), ...(random.chance(0.15) && { more: true }) },
  });
  const first = { ...own, action: action(), edit: true };
  if (random.chance(0.75)) return { kind, ...first };
  return { kind, requests: [first, { request_id: `${ASKED}-too`, action: action() }] };
}

/** The key of a child is that of its parent, with a number. */
const isChild = (key: string): boolean => key.includes("/");

/** The same at every lease of the parent; null: one was not accepted. */
async function delegateParts(
  part: Part,
  agent: string,
  { id: parent_id, key }: { readonly id: string; readonly key: string },
): Promise<string[] | null> {
  const random = new Random(part.setup.seed, `${key}/parts`);
  const others = part.setup.agents.filter((other) => other !== agent);
  const children: string[] = [];
  for (let n = random.int(1, 3); n > 0; n -= 1) {
    const [as, own, target] = [`agent:${agent}`, `${key}/${n}`, random.pick(others)];
    const body = { target, task: taskOf(own), parent_id, max_attempts: 4, ttl_seconds: 600 };
    const request = { as, path: "/v1/delegations", headers: { "idempotency-key": own }, body };
    const answer = await part.insist("delegate", { key: own, target, via: "child" }, request, shown);
    if (answer.phase !== "ok") return null;
    children.push(shownSchema.parse(answer.body).id);
  }
  return children;
}

const beatSchema = z.looseObject({
  budget: z.looseObject({ exceeded: z.literal(true).optional() }).optional(),
});
const awaitSchema = z.looseObject({ awaited: z.looseObject({}).optional() });
const raisedSchema = z.object({ interrupt_id: z.string(), answers: z.looseObject({}).optional() });
const usedSchema = z.object({ used: z.string() });
const usedFacts = (body: unknown): Facts => usedSchema.parse(body);

const repliedSchema = z.object({ outcome: z.string(), delegation: z.looseObject({ state: z.string() }) });
export function replyFacts(body: unknown): Facts {
  const { outcome, delegation } = repliedSchema.parse(body);
  return { outcome, state: delegation.state };
}
