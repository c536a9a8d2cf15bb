import { expect, test } from "vitest";
import { newBudget } from "../../src/lifecycle/stored-budget.ts";
import type { Budget } from "../../src/schema/budget.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import type { UsageReport } from "../../src/schema/usage.ts";
import { openLifecycle, type TestLifecycle } from "../support/lifecycle.ts";

const CHILDREN = ["dlg_0_a", "dlg_0_b"] as const;

/** A delegation with this budget, and calls that read better. */
async function budgeted(
  limit: Budget,
  options: {
    readonly asks?: boolean;
    readonly max_attempts?: number;
    readonly keeps_children?: 1;
  } = {},
) {
  const lifecycle = await openLifecycle();
  const { asks = false, max_attempts = 3, keeps_children } = options;
  const id = await lifecycle.inState("submitted", {
    budget: newBudget(limit, asks, undefined),
    max_attempts,
    keeps_children,
  });
  return { ...lifecycle, id, ...calls(lifecycle, id) };
}

const calls = (lifecycle: TestLifecycle, id: string) => ({
  due: () => lifecycle.move("due", id),
  shown: async () => JSON.parse((await lifecycle.read(id))?.json ?? "{}"),
  budget: async () => JSON.parse((await lifecycle.read(id))?.json ?? "{}").budget,
  report: async (usage: UsageReport) =>
    (await lifecycle.writer.move({ ...(await lifecycle.command("heartbeat", id)), usage })).outcome,
  spend: (child_id: string, spent: string) => lifecycle.move("spend", id, { child_id, spent }),
});

test("the holder is notified once, and after its time the delegation fails with budget_exceeded", async () => {
  const { id, move, due, shown, budget, report, clock } = await budgeted({ tokens: 100 });
  await move("lease", id);
  await report({ input_tokens: 60, output_tokens: 40 });
  expect(await budget()).toEqual({ limit: { tokens: 100 }, used: { tokens: 100, attempts: 1 } });
  expect((await due()).kind).toBe("not_due");
  const outcome = await report({ input_tokens: 61 });
  expect(outcome).toMatchObject({ budget: expect.stringContaining('"exceeded":true') });
  expect(await due()).toMatchObject({ kind: "ok", move: "overrun", state: "working" });
  await report({ input_tokens: 80 });
  expect((await due()).kind).toBe("not_due");
  expect(await budget()).toMatchObject({
    used: { tokens: 120 },
    exceeded: true,
    stops_at: expect.any(String),
  });
  clock.offset_ms = 29_000;
  expect((await due()).kind).toBe("not_due");
  clock.offset_ms = 30_500;
  expect(await due()).toMatchObject({ kind: "ok", move: "exceed", state: "failed" });
  expect((await shown()).error).toMatchObject({
    ...{ code: "budget_exceeded", retryable: false },
    message: "The delegation and everything under it used more than its budget: tokens 120 of 100",
  });
  expect(await move("heartbeat", id)).toMatchObject({ kind: "lease", reason: "over_budget" });
});

test("a reply within its time counts", async () => {
  const { id, move, due, report, clock } = await budgeted({ tokens: 100 });
  await move("lease", id);
  await report({ input_tokens: 101 });
  await due();
  expect(await move("complete", id)).toMatchObject({ kind: "ok", state: "completed" });
  clock.offset_ms = 31_000;
  expect((await due()).kind).toBe("not_due");
});

test("attempts and costs count, each to its limit", async () => {
  const { id, move, due, budget, report, clock } = await budgeted({
    cost: 0.3,
    currency: "USD",
    attempts: 2,
  });
  for (const attempt of [1, 2]) {
    clock.offset_ms = attempt * 50_000;
    expect((await move("lease", id)).kind).toBe("ok");
    await report({ cost: 0.1, currency: "USD" });
    await report({ cost: 0.15, currency: "USD" });
    expect(await budget()).toEqual({
      limit: { cost: 0.3, currency: "USD", attempts: 2 },
      used: { tokens: 0, cost: 0.15 * attempt, currency: "USD", attempts: attempt },
    });
    if (attempt === 1) await move("retry", id);
  }
  clock.offset_ms = 161_000;
  expect(await due()).toMatchObject({ move: "lapse" });
  clock.offset_ms = 300_000;
  await move("lease", id);
  expect(await budget()).toMatchObject({ used: { attempts: 3 }, exceeded: true });
  expect(await report({ cost: 1, currency: "EUR" })).toMatchObject({
    kind: "usage_currency",
    currency: "USD",
    of_budget: true,
  });
});

test("a lease that is returned without an attempt, or reclaimed, begins no attempt", async () => {
  const { id, move, budget, clock } = await budgeted({ attempts: 9 });
  await move("lease", id);
  await move("release", id);
  await move("lease", id);
  clock.offset_ms = 61_000;
  await move("due", id);
  await move("reclaim", id);
  expect(await budget()).toMatchObject({ used: { attempts: 1 } });
});

test("its time counts from the first lease", async () => {
  const { id, move, due, clock, budget } = await budgeted({ seconds: 60 });
  clock.offset_ms = 50_000;
  await move("lease", id);
  await move("release", id);
  clock.offset_ms = 109_000;
  await move("lease", id);
  expect((await due()).kind).toBe("not_due");
  clock.offset_ms = 111_000;
  expect(await due()).toMatchObject({ move: "overrun" });
  expect(await budget()).toMatchObject({ exceeded: true });
  clock.offset_ms = 142_000;
  expect(await due()).toMatchObject({ move: "exceed" });
});

test.each([
  [false, { move: "exceed", state: "failed" }],
  [true, { move: "ask_budget", state: "input_required" }],
] as const)("its time ends while no worker has it, at once (asks: %s)", async (asks, expected) => {
  const { id, move, due, shown, clock } = await budgeted({ seconds: 60 }, { asks });
  await move("lease", id);
  await move("await", id);
  await move("follow_up", id);
  clock.offset_ms = 59_000;
  // It looks which children have ended.
  expect((await due()).kind).toBe("pending");
  clock.offset_ms = 60_500;
  expect(await due()).toMatchObject({ kind: "ok", ...expected });
  expect((await shown()).budget).toMatchObject({ exceeded: true });
  expect((await shown()).budget).not.toHaveProperty("stops_at");
});

test("a worker that gives it back gives back its time to end", async () => {
  for (const end of ["await", "release", "retry", "interrupt"] as const) {
    const { id, move, due, report, clock } = await budgeted({ tokens: 10 });
    await move("lease", id);
    await report({ input_tokens: 11 });
    expect(await due()).toMatchObject({ move: "overrun" });
    await move(end, id);
    if (end === "await") await move("follow_up", id);
    clock.offset_ms = 1;
    expect([end, await due()]).toMatchObject([end, { kind: "ok", move: "exceed" }]);
  }
});

test("nobody gets a lease while the budget is exceeded", async () => {
  const { id, move, due, spend } = await budgeted({ tokens: 10 });
  await move("lease", id);
  await move("await", id);
  await move("follow_up", id);
  await spend("dlg_0_child", "11 0 1");
  expect((await move("child_ended", id)).kind).toBe("ok");
  expect(await move("resume", id, { child_id: "dlg_0_other" })).toMatchObject({
    kind: "ok",
    state: "submitted",
  });
  expect((await move("lease", id)).kind).toBe("over_budget");
  expect(await due()).toMatchObject({ kind: "ok", move: "exceed", state: "failed" });
});

test("reports of children count once, whatever their order", async () => {
  const { budget, spend } = await budgeted({ tokens: 1_000, cost: 5, currency: "USD" });
  const [first, second] = CHILDREN;
  for (const spent of ["10 0.1 1", "30 0.3 1", "10 0.1 1", "30 0.3 1"]) await spend(first, spent);
  await spend(second, "5 0 2");
  expect(await budget()).toMatchObject({ used: { tokens: 35, cost: 0.3, attempts: 3 } });
});

test("without a lease it fails at once when its children have used too much", async () => {
  const { id, move, due, spend } = await budgeted({ tokens: 10 });
  await move("lease", id);
  await move("await", id);
  await move("follow_up", id);
  await spend("dlg_0_child", "11 0 1");
  expect(await due()).toMatchObject({ kind: "ok", move: "exceed", state: "failed" });
});

test("a report upwards is pending until the parent has the newest sum", async () => {
  const lifecycle = await openLifecycle();
  const { move, clock } = lifecycle;
  const id = await lifecycle.inState("working", {
    parent_id: "dlg_0_parent",
    budget: newBudget(undefined, false, { of: "dlg_0_root" }),
  });
  const { report } = calls(lifecycle, id);
  expect(await report({ input_tokens: 7 })).toMatchObject({ spends_to: "dlg_0_parent", spent: "7 0 1" });
  expect(await report({ input_tokens: 7 })).not.toHaveProperty("spends_to");
  await move("follow_up", id, { spent: "0 0 1" });
  clock.offset_ms = 6_000;
  expect(await move("due", id)).toMatchObject({ kind: "pending", spends_to: "dlg_0_parent", spent: "7 0 1" });
  await move("follow_up", id, { spent: "7 0 1" });
  clock.offset_ms = 12_000;
  expect((await move("due", id)).kind).toBe("not_due");
});

test("with on_budget ask, the broker asks, and an approval raises the budget", async () => {
  const { id, move, due, shown, budget, report, clock } = await budgeted({ tokens: 100 }, { asks: true });
  await move("lease", id);
  await report({ input_tokens: 250 });
  await due();
  clock.offset_ms = 31_000;
  expect(await due()).toMatchObject({ move: "ask_budget", state: "input_required" });
  const { interrupt, history } = await shown();
  expect(interrupt.requests).toEqual([
    {
      request_id: "budget",
      message: expect.objectContaining({
        role: "ROLE_AGENT",
        parts: [{ text: "More than the budget is used: tokens 250 of 100. May it use more?" }],
      }),
      schema: {
        type: "object",
        properties: { tokens: { type: "integer", minimum: 251, maximum: 1e12 } },
        required: ["tokens"],
        additionalProperties: false,
      },
      action: { name: "raise_budget", arguments: { tokens: 400 } },
      edit: true,
    },
  ]);
  expect(history).toHaveLength(1);
  const raised = { interrupt_id: interrupt.id, raised: '{"tokens":400}' };
  expect(await move("answer", id, raised)).toMatchObject({ move: "answer", state: "submitted" });
  expect(await budget()).toEqual({
    limit: { tokens: 400 },
    used: { tokens: 250, attempts: 1 },
    on_budget: "ask",
  });
  await move("lease", id);
  await report({ input_tokens: 151 });
  expect(await due()).toMatchObject({ move: "overrun" });
});

test("the question allows only amounts that a budget can have, and proposes none else", async () => {
  const limit = { tokens: 100, cost: 5, currency: "USD", seconds: 20_000_000, attempts: 900_000 };
  const { id, move, due, shown, spend, clock } = await budgeted(limit, { asks: true });
  await move("lease", id);
  await spend("dlg_0_child", "0 0 900001");
  await due();
  clock.offset_ms = 31_000;
  expect(await due()).toMatchObject({ move: "ask_budget" });
  const { interrupt } = await shown();
  const [{ action, schema }] = interrupt.requests;
  expect(action.arguments).toEqual({ attempts: 1_000_000 });
  expect(schema.required).toEqual(["attempts"]);
  expect(schema.properties).toEqual({
    tokens: { type: "integer", minimum: 1, maximum: 1e12 },
    cost: { type: "number", exclusiveMinimum: 0, maximum: 1e12 },
    attempts: { type: "integer", minimum: 900_002, maximum: 1e6 },
    seconds: { type: "number", minimum: expect.any(Number), maximum: 31_536_000 },
  });
  await move("answer", id, { interrupt_id: interrupt.id, raised: JSON.stringify(action.arguments) });
  expect((await shown()).budget.limit).toEqual({ ...limit, attempts: 1_000_000 });
});

test("it fails when the question has no room in the delegation", async () => {
  const { id, move, due, report, clock, writer, command } = await budgeted({ tokens: 10 }, { asks: true });
  await move("lease", id);
  const filled = LIMITS.delegation_bytes.value - 100;
  expect((await writer.move({ ...(await command("message", id)), bytes: filled })).outcome.kind).toBe("ok");
  await report({ input_tokens: 11 });
  await due();
  clock.offset_ms = 31_000;
  expect(await due()).toMatchObject({ kind: "ok", move: "exceed", state: "failed" });
});

test("frequent reports do not keep the sweep from other deliveries", async () => {
  const lifecycle = await openLifecycle();
  const { move, clock } = lifecycle;
  const id = await lifecycle.inState("working", {
    parent_id: "dlg_0_parent",
    budget: newBudget(undefined, false, { of: "dlg_0_root" }),
  });
  await move("follow_up", id, { spent: "0 0 1" });
  const { spend } = calls(lifecycle, id);
  await move("complete", id);
  await spend("dlg_0_a", "1 0 0");
  for (let n = 2; n < 5; n += 1) {
    clock.offset_ms += 2_000;
    await spend("dlg_0_a", `${n} 0 0`);
  }
  expect(await move("due", id)).toMatchObject({ kind: "pending", spent: "4 0 1" });
});

test.each(["complete", "cancel"] as const)(
  "what is used after it ended (%s) counts, and stops its children",
  async (end) => {
    const { id, move, spend, shown } = await budgeted({ tokens: 10 });
    await move("adopt", id);
    await move("lease", id);
    await move(end, id);
    expect(await spend("dlg_0_child", "10 0 1")).not.toHaveProperty("cascade");
    expect(await spend("dlg_0_child", "11 0 1")).toMatchObject({ cascade: "caller:alice", cascade_all: 1 });
    expect((await shown()).budget).toMatchObject({ used: { tokens: 11 }, exceeded: true });
    await move("follow_up", id, { cascaded: true });
    expect(await spend("dlg_0_child", "12 0 1")).toMatchObject({ cascade_all: 1 });
  },
);

test("a question for more that expires stops its children, also those that it keeps", async () => {
  const { id, move, due, spend, clock } = await budgeted({ tokens: 10 }, { asks: true, keeps_children: 1 });
  await move("adopt", id);
  await move("lease", id);
  await spend("dlg_0_child", "11 0 1");
  await due();
  clock.offset_ms = 31_000;
  await due();
  clock.offset_ms = 604_900_000;
  expect(await due()).toMatchObject({ move: "expire", cascade: "caller:alice", cascade_all: 1 });
});

test("the time that the broker's question is open does not count", async () => {
  const { id, move, due, shown, budget, clock } = await budgeted({ seconds: 60 }, { asks: true });
  await move("lease", id);
  clock.offset_ms = 61_000;
  await due();
  clock.offset_ms = 92_000;
  await due();
  expect((await shown()).interrupt.requests[0].action.arguments).toEqual({ seconds: 120 });
  clock.offset_ms = 1_092_000;
  const { interrupt } = await shown();
  await move("answer", id, { interrupt_id: interrupt.id, raised: '{"seconds":120}' });
  expect(await budget()).not.toHaveProperty("exceeded");
  await move("lease", id);
  clock.offset_ms += 27_000;
  expect((await due()).kind).toBe("not_due");
  clock.offset_ms += 2_000;
  expect(await due()).toMatchObject({ move: "overrun" });
});

test("a denial fails it, also while it waited for children", async () => {
  const { id, move, due, shown, spend } = await budgeted({ tokens: 10 }, { asks: true });
  await move("lease", id);
  await move("await", id);
  await move("follow_up", id);
  await spend("dlg_0_child", "11 0 1");
  expect(await due()).toMatchObject({ move: "ask_budget", state: "input_required" });
  const { interrupt } = await shown();
  expect(await move("answer", id, { interrupt_id: interrupt.id, denies_budget: true })).toMatchObject({
    move: "deny_budget",
    state: "failed",
  });
  expect((await shown()).error).toMatchObject({
    ...{ code: "budget_exceeded", category: "UPSTREAM", recovery: expect.any(String) },
    message: "The delegation and everything under it used more than its budget: tokens 11 of 10",
  });
});

test("an ordinary delegation stores nothing of a budget", async () => {
  const { id, move, report } = await (async () => {
    const lifecycle = await openLifecycle();
    const plain = await lifecycle.inState("submitted");
    return { ...lifecycle, id: plain, ...calls(lifecycle, plain) };
  })();
  await move("lease", id);
  expect(await report({ input_tokens: 1e9 })).not.toHaveProperty("budget");
  expect((await move("due", id)).kind).toBe("not_due");
});
