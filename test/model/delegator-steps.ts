/**
 * The steps of delegators, approvers and operators in a walk. Limit: no idempotency keys; they have tests of their own.
 */

import * as fc from "fast-check";
import { expect } from "vitest";
import { isTerminal } from "../../src/schema/delegation.ts";
import { newBudget, raised } from "./budgets.ts";
import type { AskedQuestion, Item, Refusal } from "./item.ts";
import { count, MAX_DEPTH, type Model, THIRD, UNIT } from "./model.ts";
import { compare, judge, MAX_ATTEMPTS, type Real } from "./real.ts";
import { hasItems, type Pick, pickItem, type Step, step } from "./step.ts";
import { countsVote, hasVoted, votersOf } from "./votes.ts";

export const via = fc.nat({ max: 1 });
export const pick: fc.Arbitrary<Pick> = fc.record({
  n: fc.nat({ max: 50 }),
  fitting: fc.oneof({ weight: 6, arbitrary: fc.constant(true) }, fc.constant(false)),
});
/** A duration that never ends exactly when a step of the clock does. */
export const span = (units: number) => fc.nat({ max: units }).map((n) => n * UNIT + THIRD);
/** Usually absent. */
export const rarely = <T>(some: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, some);
/** One agent gets most of the work, so that its leases compete. */
export const agentIndex = fc.constantFrom(0, 0, 0, 1, 2);
export const who = fc.oneof(
  { weight: 4, arbitrary: fc.constant("delegator") },
  fc.constantFrom("operator", "approver:ann", "caller:bob", "target"),
);

export function principal(by: string, item: Item): string {
  if (by === "delegator") return item.delegator;
  return by === "target" ? `agent:${item.target}` : by;
}

export function nameOf(model: Model, index: number): string {
  const agent = model.agents[index];
  if (!agent) throw new RangeError("no agent");
  return agent.name;
}

interface Delegate {
  readonly via: number;
  readonly target: number;
  readonly priority: number;
  readonly delay: number | undefined;
  readonly ttl: number | undefined;
  readonly startWithin: number | undefined;
  readonly maxAttempts: number | undefined;
  readonly parent: Pick | undefined;
  readonly context: string | undefined;
  readonly byAgent: boolean;
  readonly budget: { readonly tokens: number; readonly asks: boolean } | undefined;
}

export function refusesNew(
  model: Model,
  by: string,
  target: string,
  parent: Item | null,
  delay = 0,
): Refusal | null {
  if (parent && !model.sees(by, parent)) return { code: "delegation_not_found" };
  if (parent && isTerminal(parent.state)) return { code: "already_finished" };
  const above = model.ancestors(parent);
  const isLoop =
    by.startsWith("agent:") && (by === `agent:${target}` || above.some((item) => item.target === target));
  if (above.length >= MAX_DEPTH || isLoop) return { code: "delegation_loop" };
  if (parent && !mayStart(model, parent, delay)) return { code: "invalid_request" };
  return model.isFull(target) ? { code: "queue_full" } : null;
}

const mayStart = (model: Model, parent: Item, delay = 0): boolean => model.now + delay < parent.deadlineAt;

const delegate = step<Delegate>({
  name: "delegate",
  async run(model, real, args) {
    const target = nameOf(model, args.target);
    const parent =
      args.parent && hasItems(model) ? pickItem(model, args.parent, ({ state }) => !isTerminal(state)) : null;
    const by = parent && args.byAgent ? `agent:${parent.target}` : "caller:alice";
    const refusal = refusesNew(model, by, target, parent, args.delay);
    const answer = await real.call(args.via, by, "POST", "/v1/delegations", {
      target,
      task: "do it",
      priority: args.priority,
      delay_seconds: args.delay,
      ttl_seconds: args.ttl,
      start_within_seconds: args.startWithin,
      max_attempts: args.maxAttempts,
      parent_id: parent?.id,
      context_id: args.context,
      ...(args.budget && {
        budget: { tokens: args.budget.tokens },
        ...(args.budget.asks && { on_budget: "ask" }),
      }),
    });
    judge(answer, refusal, 202);
    if (refusal) return;
    const item = model.submit({
      ...args,
      id: answer.body.id,
      target,
      delegator: by,
      parent,
      context: args.context ?? null,
      maxAttempts: args.maxAttempts ?? MAX_ATTEMPTS,
      budget: args.budget ? newBudget(args.budget.tokens, args.budget.asks) : null,
    });
    compare(item, answer.body);
  },
});

/** More work of one delegator than of another, for one agent and with one priority, so that they take turns. */
const rush = step<{ via: number; target: number; first: string; counts: readonly [number, number] }>({
  name: "rush",
  async run(model, real, { via, target: index, first, counts }) {
    const target = nameOf(model, index);
    const second = first === "caller:alice" ? "caller:bob" : "caller:alice";
    for (const [by, many] of [[first, counts[0]] as const, [second, counts[1]] as const]) {
      for (let n = 0; n < many; n += 1) {
        const refusal = refusesNew(model, by, target, null);
        const answer = await real.call(via, by, "POST", "/v1/delegations", { target, task: "do it" });
        judge(answer, refusal, 202);
        if (refusal) return;
        const ordinary = { priority: 5, maxAttempts: MAX_ATTEMPTS };
        compare(model.submit({ ...ordinary, id: answer.body.id, target, delegator: by }), answer.body);
      }
    }
  },
});

const cancel = step<{ via: number; pick: Pick; by: string; cascade: boolean }>({
  name: "cancel",
  check: hasItems,
  async run(model, real, args) {
    const again = (state: Item["state"]) => args.cascade && state === "canceled";
    const item = pickItem(model, args.pick, ({ state }) => !isTerminal(state) || again(state));
    const by = principal(args.by, item);
    const legal = item.state === "canceled" ? null : model.mayMove("cancel", item);
    const refusal = model.mayControl(by, item) ?? legal;
    const path = `/v1/delegations/${item.id}/cancel`;
    judge(await real.call(args.via, by, "POST", path, { cascade: args.cascade }), refusal);
    await real.settled();
    if (!refusal && item.state !== "canceled") model.cancel(item, args.cascade);
    else if (!refusal && args.cascade) {
      count(model.made, "cascade");
      model.cascade(item);
    }
    // What ends over its budget stops everything under it, also without `cascade`.
    if (model.settle()) await real.settled();
    await real.check(item, model);
    for (const child of item.children) await real.check(child, model);
  },
});

const SHAPES = {
  text: { text: "yes" },
  decision: { decision: "approve" },
  deny: { decision: "deny" },
  edited: { decision: "approve", data: { at: 2 } },
  wrong: { answers: { "not asked": { text: "yes" } } },
} as const;

/** What a repeat has in common with the answer: the content, or for a credential the principal and the request key. */
function isRepeated(
  { kind, answer, voted = [] }: AskedQuestion,
  text: string,
  by: string,
  key: string | null,
): boolean {
  if (answer === null) return false;
  if (kind === "auth") return key !== null && answer.key === key && answer.by === by;
  return answer.text === text || voted.includes(`${by} ${text}`);
}

/** Another approval. */
const OTHERWISE: Partial<Record<keyof typeof SHAPES | "all", keyof typeof SHAPES>> = {
  decision: "edited",
  edited: "decision",
};

interface Answering {
  via: number;
  pick: Pick;
  by: string;
  question: Pick;
  shape: keyof typeof SHAPES | "all";
  key: string | null;
  /** The same person answers again. */
  next: "nothing" | "the same" | "otherwise";
}

const answer = step<Answering>({
  name: "answer",
  check: (model, { pick }) => model.items.some(({ open }) => !pick.fitting || open !== null),
  async run(model, real, args) {
    const item = pickItem(model, args.pick, ({ open }) => open !== null);
    await answerOnce(model, real, item, args);
    if (args.next !== "nothing") {
      const shape = args.next === "otherwise" ? OTHERWISE[args.shape] : args.shape;
      await answerOnce(model, real, item, { ...args, shape: shape ?? args.shape, via: args.via + 1 });
    }
  },
});

export async function answerOnce(model: Model, real: Real, item: Item, args: Answering): Promise<void> {
  const by = principal(args.by, item);
  const { questions, open } = item;
  const picked = questions[questions.length - 1 - (args.question.n % 2)];
  const chosen = (args.question.fitting ? open?.question : undefined) ?? picked;
  // Asked again after a failed attempt, it has the same id.
  const question = open !== null && open.question.id === chosen?.id ? open.question : chosen;
  // It is rare, so most answers deny it.
  const isBudget = question?.shape === "budget";
  const isEditable = question?.kind === "input" && question.shape === "approval";
  const fitting = args.shape === "edited" && !isEditable ? "decision" : args.shape;
  const shape = isBudget && (fitting === "all" || fitting === "wrong") ? "deny" : fitting;
  const each = Object.fromEntries((question?.requests ?? ["none"]).map((id) => [id, { text: "yes" }]));
  const given = shape === "all" ? { answers: each } : SHAPES[shape];
  const body = { interrupt_id: question?.id ?? "int_unknown", ...given };
  const text = JSON.stringify(body);

  const control = model.mayControl(by, item);
  const isOpen = question !== undefined && open?.question === question;
  const isShort = shape === "wrong" || (shape !== "all" && question?.requests.length !== 1);
  const isApproval = shape === "decision" || shape === "edited";
  const isDecided = isApproval || shape === "deny";
  const isMisfit = (question?.shape === "approval" || isBudget) && !isDecided;
  const isRepeat = question !== undefined && isRepeated(question, text, by, args.key);
  const isSpent = !isOpen && !isRepeat;
  const wrong: Refusal | null = isOpen && (isShort || isMisfit) ? { code: "invalid_request" } : null;
  const agent = model.agent(item.target);
  const isVoted = isOpen && isApproval && question.kind === "input" && !isBudget;
  const uncounted: Refusal | null = isVoted && !countsVote(agent, by, item) ? { code: "forbidden" } : null;
  const refusal =
    control ?? wrong ?? uncounted ?? (isSpent ? ({ code: "interrupt_not_open" } as const) : null);
  const headers = args.key === null ? {} : { "idempotency-key": args.key };
  const path = `/v1/delegations/${item.id}/answer`;
  judge(await real.call(args.via, by, "POST", path, body, headers), refusal);
  if (!refusal && !isOpen && question?.kind === "auth")
    count(model.made, "again with the key of a credential");
  if (wrong && refusal === wrong && isMisfit) count(model.made, "an answer that does not fit");
  const before = isVoted ? votersOf(agent, item, shape) : [];
  const voters = hasVoted(before, by) ? before : [...before, by];
  if (!refusal && isVoted && voters.length < (agent.votes?.needed ?? 1)) {
    vote(model, item, question, { content: shape, by, isNew: voters !== before, voters, text });
  } else if (!refusal && isOpen) {
    const isDenied = isBudget && shape === "deny";
    const name = isDenied ? "deny_budget" : model.isHeld(item) ? "hand_over" : "answer";
    expect(model.mayMove(name, item)).toBeNull();
    model.move(name, item, isDenied ? { error: "budget_exceeded" } : {});
    if (isBudget && item.budget && !isDenied) raised(item.budget);
    item.history += question.requests.length;
    question.answer = { text, by, key: args.key };
  }
  await real.check(item, model);
}

interface Vote {
  readonly content: string;
  readonly by: string;
  readonly isNew: boolean;
  readonly voters: readonly string[];
  readonly text: string;
}

/** More approvals are needed. A repeated one changes nothing. */
function vote(model: Model, item: Item, question: AskedQuestion, given: Vote): void {
  const { content, by, isNew, voters, text } = given;
  if (!isNew) {
    count(model.made, "voted again");
    return;
  }
  if (item.votes && item.votes.content !== content) count(model.made, "voided votes");
  model.move("vote", item);
  item.votes = { content, by: voters };
  item.history += question.requests.length;
  question.voted?.push(`${by} ${text}`);
}

const message = step<{ via: number; pick: Pick; by: string; id: string; text: string }>({
  name: "message",
  check: hasItems,
  async run(model, real, { via, pick, by: role, id, text }) {
    const item = pickItem(model, pick, ({ state }) => state === "working");
    const by = principal(role, item);
    // A repeat is accepted in every state.
    const isNew = item.said.get(id) !== text;
    const refusal = model.mayControl(by, item) ?? (isNew ? model.mayMove("message", item) : null);
    const message = { messageId: id, parts: [{ text }] };
    judge(await real.call(via, by, "POST", `/v1/delegations/${item.id}/messages`, { message }), refusal, 202);
    if (!refusal && isNew) {
      model.move("message", item);
      item.said.set(id, text);
      item.unseen.push(id);
      item.history += 1;
    }
    await real.check(item, model);
  },
});

const redrive = step<{ via: number; pick: Pick; by: string }>({
  name: "redrive",
  check: hasItems,
  async run(model, real, args) {
    const item = pickItem(model, args.pick, ({ state }) => state === "failed");
    const by = principal(args.by, item);
    const isNew = item.redriven === null;
    const isOpen = item.parent && !isTerminal(item.parent.state) && mayStart(model, item.parent);
    const parent = isOpen ? item.parent : null;
    const forbidden: Refusal | null = by === "approver:ann" ? { code: "forbidden" } : null;
    const illegal: Refusal | null = model.mayMove("redrive", item) && { code: "wrong_state" };
    const full: Refusal | null = isNew && model.isFull(item.target) ? { code: "queue_full" } : null;
    const refusal = model.mayControl(by, item) ?? forbidden ?? illegal ?? full;
    const answer = await real.call(args.via, by, "POST", `/v1/delegations/${item.id}/redrive`);
    judge(answer, refusal, 202);
    if (!refusal) {
      expect(answer.body.redrive_of).toBe(item.id);
      const { target, delegator, context, priority, maxAttempts, ttl, budget } = item;
      item.redriven ??= model.submit({
        id: answer.body.id,
        target,
        delegator,
        parent,
        context,
        priority,
        maxAttempts,
        ttl,
        budget: budget && newBudget(budget.tokens, budget.asks),
      });
      compare(item.redriven, answer.body);
    }
    await real.check(item, model);
  },
});

export const delegations: fc.Arbitrary<Step> = fc
  .record({
    via,
    target: agentIndex,
    priority: fc.constantFrom(0, 5, 5, 9),
    delay: rarely(span(2)),
    ttl: rarely(span(5)),
    startWithin: rarely(span(2)),
    maxAttempts: rarely(fc.constantFrom(1, 1, 3)),
    parent: rarely(pick),
    context: fc.constantFrom(undefined, undefined, undefined, "c1", "c1", "c2"),
    byAgent: fc.boolean(),
    budget: rarely(fc.record({ tokens: fc.constantFrom(1, 2, 5), asks: fc.constantFrom(true, true, false) })),
  })
  .map(delegate);

/** The steps, each with its weight. */
export const delegatorSteps: readonly [number, fc.Arbitrary<Step>][] = [
  [8, delegations],
  [
    1,
    fc
      .record({
        via,
        target: agentIndex,
        first: fc.constantFrom("caller:alice", "caller:bob"),
        counts: fc.tuple(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 1, max: 2 })),
      })
      .map(rush),
  ],
  [2, fc.record({ via, pick, by: who, cascade: fc.boolean() }).map(cancel)],
  [
    16,
    fc
      .record({
        via,
        pick,
        by: who,
        question: pick,
        shape: fc.constantFrom(
          "all",
          "all",
          "all",
          "text",
          "decision",
          "decision",
          "edited",
          "deny",
          "wrong",
        ),
        key: fc.constantFrom("k1", "k2", null),
        next: fc.constantFrom("nothing", "nothing", "the same", "otherwise"),
      })
      .map(answer),
  ],
  [
    6,
    fc
      .record({
        via,
        pick,
        by: who,
        id: fc.constantFrom("m1", "m2", "m3"),
        text: fc.constantFrom("and this", "and that"),
      })
      .map(message),
  ],
  [3, fc.record({ via, pick, by: who }).map(redrive)],
];
