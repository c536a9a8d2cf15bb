/**
 * Delegators: submit at a steady rate with an idempotency key each, repeat submits without an answer, cancel, send
 * follow-ups, read, try to read the work of others, answer questions. Two callers in each process.
 */
import * as z from "zod";
import { Delegator } from "../../../src/client/delegator.ts";
import { toArguments } from "../../../src/client/delegator-options.ts";
import { ErrandApiError } from "../../../src/client/errors.ts";
import type { Budget } from "../../../src/schema/budget.ts";
import { isBudgetQuestion } from "../../../src/schema/budget-question.ts";
import type { Random } from "../random.ts";
import type { Ending } from "../recorder.ts";
import { COUNCIL, LIBRARY_AGENT, MCP_AGENT, PUSH_AGENT, RAISED, SHELF, taskOf } from "../setup.ts";
import { type Part, shown, shownSchema } from "./part.ts";

const WAYS = { rest: 60, batch: 8, library: 22, callback: 10 } as const;
const OLD = 200;

export async function runDelegator(part: Part): Promise<void> {
  const callers = Object.keys(part.setup.tokens).filter((name) =>
    name.startsWith(`caller:${part.setup.proc}`),
  );
  const [first = "", second = ""] = callers;
  await Promise.all([submitting(part, [first, second]), ...callers.map((caller) => answering(part, caller))]);
}

async function submitting(part: Part, callers: readonly [string, string]): Promise<void> {
  const known: { readonly id: string; readonly as: string }[] = [];
  const running = new Set<Promise<void>>();
  for (let n = 0; !part.quiet && !part.finished; n += 1) {
    const as = part.random.pick(callers);
    const other = as === callers[0] ? callers[1] : callers[0];
    const story = one(part, as, `${part.setup.proc}-${part.setup.life}-${n}`).then(async (id) => {
      if (id === undefined) return;
      known.push({ id, as });
      if (known.length > OLD) known.shift();
      await after(part, as, other, id);
    });
    running.add(story);
    void story.finally(() => running.delete(story));
    await part.sleep(part.random.between(0, 2_000 / part.setup.rate));
  }
  await Promise.all(running);
  part.idle();
  // The other loops answer later questions.
  while (!part.finished) await part.sleep(500);
}

/** Submits one delegation until it is accepted or refused; returns its id. */
async function one(part: Part, as: string, key: string): Promise<string | undefined> {
  const { random, setup } = part;
  // The library and the batch always send keys.
  const way = setup.keyed ? random.weighted(WAYS) : "rest";
  const target = random.weighted({
    ...Object.fromEntries(setup.agents.map((agent) => [agent, 80 / setup.agents.length])),
    [LIBRARY_AGENT]: 10,
    [PUSH_AGENT]: 4,
    [MCP_AGENT]: 3,
    [SHELF]: 3,
    // Without people, nobody would answer it.
    [COUNCIL]: setup.keyed ? 6 : 0,
  });
  const task = taskOf(key, "x".repeat(random.chance(0.05) ? random.int(1_000, 20_000) : random.int(10, 400)));
  // Those of one caller and agent that follow each other are a conversation, which ends after some time.
  const talks = [...setup.agents, SHELF].includes(target) && random.chance(0.3);
  const talk = `${setup.proc}-${setup.life}-${Math.floor(Number(key.slice(key.lastIndexOf("-") + 1)) / 60)}`;
  const input = {
    target,
    task,
    ...(talks && { context_id: talk }),
    ...(random.chance(0.2) && budgetOf(random)),
    max_attempts: 4,
    ttl_seconds: 600,
    priority: random.int(0, 9),
    ...(!talks && random.chance(0.05) && { delay_seconds: random.int(1, 3) }),
    ...(way === "callback" && { callback: { url: setup.receiver.url, secret: setup.receiver.secret } }),
  };
  const facts = { as, key, target, via: way };
  if (way === "library") return byLibrary(part, as, key, input, facts);
  if (way === "batch") return byBatch(part, as, key, input, facts);
  const headers = {
    ...(setup.keyed && { "idempotency-key": key }),
    ...(random.chance(0.1) && { prefer: "wait=2" }),
  };
  const request = { as, path: "/v1/delegations", headers, body: input, holdSeconds: 2 };
  const { phase, body } = await part[setup.keyed ? "insist" : "call"]("delegate", facts, request, shown);
  if (phase !== "ok") return undefined;
  // A repeated submit returns the same delegation.
  if (setup.keyed && random.chance(0.12)) await part.call("delegate", facts, request, shown);
  return shownSchema.parse(body).id;
}

function budgetOf(random: Random): { budget: Budget; on_budget?: "ask" } {
  const budget = random.chance(0.8)
    ? { tokens: random.pick([10, 30, 100]) }
    : { tokens: 400, attempts: random.int(1, 3) };
  return { budget, ...(random.chance(0.6) && { on_budget: "ask" }) };
}

async function byLibrary(
  part: Part,
  as: string,
  key: string,
  input: Parameters<typeof toArguments>[0],
  facts: object,
): Promise<string | undefined> {
  const [task, times] = toArguments(input);
  const url = part.gateway();
  const delegator = new Delegator({ url, token: part.token(as), retryForMs: 20_000 });
  let id: string | undefined;
  await part.recorder.call("delegate", facts, async (): Promise<Ending> => {
    try {
      const delegation = await delegator.delegate(task, {
        ...times,
        idempotencyKey: key,
        signal: part.finish,
      });
      id = delegation.id;
      return { phase: "ok", id, state: delegation.state, version: delegation.version };
    } catch (error) {
      if (!(error instanceof ErrandApiError)) return { phase: "info", code: "aborted" };
      const { status, code } = error;
      return { phase: status === 0 || status >= 500 ? "info" : "fail", status, code };
    }
  });
  return id;
}

const batchSchema = z.object({
  results: z.tuple([z.looseObject({ status: z.number(), delegation: shownSchema.optional() })]),
});

async function byBatch(
  part: Part,
  as: string,
  key: string,
  input: object,
  facts: object,
): Promise<string | undefined> {
  const body = { delegations: [{ ...input, idempotency_key: key }] };
  for (let tries = 0; tries < 20 && !part.finished; tries += 1) {
    let id: string | undefined;
    let refused = false;
    await part.recorder.call("delegate", { ...facts, as }, async (): Promise<Ending> => {
      const answer = await part.send({ as, path: "/v1/delegations/batch", body });
      const { status, code = "" } = answer;
      if (answer.phase !== "ok") return { phase: answer.phase, status, code };
      const [result] = batchSchema.parse(answer.body).results;
      id = result.delegation?.id;
      refused = result.status >= 400 && result.status < 500 && result.status !== 429;
      const phase = id !== undefined ? "ok" : refused ? "fail" : "info";
      return { phase, status: result.status, ...(id !== undefined && { id }) };
    });
    if (id !== undefined || refused) return id;
    await part.sleep(part.random.between(100, 600));
  }
  return undefined;
}

/** Cancels, follow-ups and reads of some live delegations. */
async function after(part: Part, as: string, other: string, id: string): Promise<void> {
  const { random } = part;
  const path = `/v1/delegations/${id}`;
  if (random.chance(0.08)) {
    await part.call("foreign", { id, state: "to read it" }, { as: other, method: "GET", path });
    await part.call(
      "foreign",
      { id, state: "to cancel it" },
      { as: other, path: `${path}/cancel`, body: {} },
    );
    await part.call(
      "foreign",
      { id, state: "to watch it" },
      { as: other, method: "GET", path: `${path}/events?after=0` },
    );
  }
  if (random.chance(0.05)) {
    await part.sleep(random.between(0, 500));
    await part.call(
      "message",
      { id },
      { as, path: `${path}/messages`, body: { text: "one more thing" } },
      shown,
    );
  }
  if (random.chance(0.04)) {
    await part.sleep(random.between(0, 3_000));
    await part.insist("cancel", { id }, { as, path: `${path}/cancel`, body: { reason: "enough" } }, shown);
  }
  if (random.chance(0.1)) {
    await part.call(
      "read",
      { id },
      { as, method: "GET", path: `${path}?wait_seconds=1`, holdSeconds: 1 },
      shown,
    );
  }
}

const inboxSchema = z.object({
  results: z.array(shownSchema.extend({ target: z.string() })),
  cursor: z.string(),
});

/** Reads the inbox and answers questions. */
async function answering(part: Part, as: string): Promise<void> {
  let cursor = "0";
  while (!part.finished) {
    const path = `/v1/results?wait_seconds=2&limit=100&after=${encodeURIComponent(cursor)}`;
    const { phase, body } = await part.send({ as, method: "GET", path, holdSeconds: 2 });
    if (phase !== "ok") {
      await part.sleep(part.random.between(100, 500));
      continue;
    }
    const page = inboxSchema.parse(body);
    cursor = page.cursor;
    for (const { id, interrupt, target } of page.results) {
      if (!interrupt) continue;
      const isForBudget = isBudgetQuestion(interrupt.id);
      const isOfCouncil = target === COUNCIL && !isForBudget;
      // Its own approval does not count; its denial does.
      if (isOfCouncil && part.random.chance(0.4)) continue;
      const isDenied = part.random.chance(isForBudget ? 0.2 : isOfCouncil ? 0.1 : 0);
      const [decision, text] = isDenied ? ["deny", "no"] : ["approve", isForBudget ? RAISED : "yes"];
      const answers = Object.fromEntries(
        interrupt.requests.map(({ request_id }) => [request_id, { decision, text }]),
      );
      const request = {
        as,
        path: `/v1/delegations/${id}/answer`,
        body: { interrupt_id: interrupt.id, answers },
      };
      const facts = { id, text, decision, asked: interrupt.id };
      await part.insist("answer", facts, request, shown, 60_000);
    }
  }
}
