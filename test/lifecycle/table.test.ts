import { describe, expect, test } from "vitest";
import { toEntry } from "../../src/events/entry.ts";
import { MOVE_NAMES, MOVES, type Move, type MoveName } from "../../src/lifecycle/states.ts";
import { agentRequestSchema } from "../../src/schema/agent.ts";
import { type State, stateSchema } from "../../src/schema/delegation.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle, readFieldsOf } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";

const WEEK_MS = 604_800_000;
interface TimedMove {
  readonly after_ms: number;
  readonly attempts: number;
  readonly away?: true;
  /** What happens when its budget is exceeded. */
  readonly on_budget?: "fail" | "ask";
}
/** Moves that only a timer makes: the sweep's `due` makes them after this time. */
const BY_TIME: Partial<Record<MoveName, TimedMove>> = {
  grace: { after_ms: 61_000, attempts: 3, away: true },
  lapse: { after_ms: 61_000, attempts: 3 },
  exhaust: { after_ms: 61_000, attempts: 1 },
  expire: { after_ms: WEEK_MS + 1_000, attempts: 3 },
  overrun: { after_ms: 0, attempts: 3, on_budget: "fail" },
  exceed: { after_ms: 31_000, attempts: 3, on_budget: "fail" },
  ask_budget: { after_ms: 31_000, attempts: 3, on_budget: "ask" },
  age: { after_ms: 1_000, attempts: 3 },
};

/** What must have happened before, besides the state. */
const AFTER: Partial<Record<MoveName, { state: State; lapses: true }>> = {
  reclaim: { state: "submitted", lapses: true },
};

/** In an asked state, only a held question has a lease. */
const holds = (name: MoveName, { requires }: Move): boolean =>
  requires.includes("holder") || name === "hand_over" || name === "grace" || name === "overrun";

const AGEING = { priority_ageing_seconds: 1 };

/** Moves that replace another one beyond the event limit, with this `max_attempts`. */
const GIVES_UP: Partial<Record<MoveName, number>> = { give_up: 1 };

describe.each(MOVE_NAMES)("%s", (name) => {
  const move: Move = MOVES[name];

  test.each(stateSchema.options)("from %s", async (state) => {
    const inLine = name === "admit" && state === "submitted";
    const settings = { ...(inLine && { serial_by: "context" }), ...(name === "age" && AGEING) };
    const lifecycle = await openLifecycle(settings);
    if (inLine) await lifecycle.inState("submitted");
    const timed = BY_TIME[name];
    const max_attempts = timed?.attempts ?? GIVES_UP[name];
    const uses = name === "use" && move.from.includes(state);
    const id = await lifecycle.inState(
      uses ? "working" : state,
      {
        ...(max_attempts !== undefined && { max_attempts }),
        ...(timed?.on_budget && {
          budget: JSON.stringify({
            limit: { tokens: 1 },
            used: { tokens: 0, attempts: 0 },
            on_budget: timed.on_budget,
            begun: 0,
          }),
        }),
      },
      { isHeld: move.from.includes(state) && holds(name, move) },
    );
    if (uses) {
      await lifecycle.move("hold", id);
      await lifecycle.move("answer", id, { answers: '{"r":{}}' });
      if (state !== "working")
        await lifecycle.move("hold", id, { interrupt_id: "int_2", reply_hash: "2", to: state });
    }
    if (AFTER[name]?.state === state) {
      await lifecycle.move("lease", id);
      lifecycle.clock.offset_ms = 61_000;
      expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
    }
    if (timed?.on_budget) {
      await lifecycle.move("spend", id, { child_id: "dlg_0_child", spent: "2 0 0" });
      // Its worker must know it first.
      if (state === "working" && name !== "overrun")
        expect(await lifecycle.move("due", id)).toMatchObject({ move: "overrun" });
    }
    // Without the setting, nothing waits for its turn.
    if (inLine) await lifecycle.agents.put("scout", agentRequestSchema.parse({}));
    const before = await lifecycle.read(id);
    lifecycle.clock.offset_ms = timed?.after_ms ?? 0;
    if (timed?.away) {
      const from = before?.get("lease_granted_at") ?? 0;
      await lifecycle.redis.rpush(lifecycle.shards.at(0).outages, `${from} ${from + timed.after_ms}`);
    }
    const stored = await dump(lifecycle.redis);

    const legal = move.from.includes(state);
    const outcome = await lifecycle.move(timed && legal ? "due" : name, id);

    if (!legal) {
      expect(outcome.kind).not.toBe("ok");
      expect(await dump(lifecycle.redis)).toEqual(stored);
      return;
    }
    const to: State = move.to.length === 0 ? state : (move.to[0] ?? state);
    expect(outcome).toMatchObject({ kind: "ok", move: name, state: to });
    const after = await lifecycle.read(id);
    expect(after?.get("state")).toBe(to);
    expect(after?.get("version")).toBe((before?.get("version") ?? 0) + (move.event === null ? 0 : 1));
    expect(after?.get("attempt")).toBe(
      (before?.get("attempt") ?? 0) + (move.spends ? 1 : 0) - (move.refunds ? 1 : 0),
    );
    expect(after?.get("fence")).toBe((before?.get("fence") ?? 0) + (move.lease === "grant" ? 1 : 0));
    expect(after?.get("ticket")).toBe((before?.get("ticket") ?? 0) + (move.queue === "ticket" ? 1 : 0));
    const events = await ownEvents(lifecycle.redis, id);
    expect(events).toHaveLength(after?.get("version") ?? -1);
    if (move.event !== null) {
      const last = toEntry(0, "0-0", ["e", events.at(-1)?.[1] ?? ""]);
      expect(last.type).toBe(move.event);
      if (move.status) expect(last.status).toBe(move.status);
    }
  });
});

test("submit creates a record if there is none, and its agent must exist", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("submitted");
  expect(readFieldsOf(await lifecycle.read(id))).toMatchObject({
    state: "submitted",
    version: 1,
    attempt: 1,
    ticket: 1,
  });
  const before = await dump(lifecycle.redis);
  const other = lifecycle.shards.newDelegationId("nobody");
  expect((await lifecycle.move("submit", other, { target: "nobody" })).kind).toBe("no_agent");
  expect(await dump(lifecycle.redis)).toEqual(before);
});

test.each(MOVE_NAMES.filter((name) => name !== "submit"))(
  "%s of an unknown delegation is missing",
  async (name) => {
    const lifecycle = await openLifecycle();
    expect((await lifecycle.move(name, lifecycle.shards.newDelegationId("scout"))).kind).toBe("missing");
  },
);

test("no move, named or by a timer, leaves a terminal state", async () => {
  const lifecycle = await openLifecycle();
  for (const state of ["completed", "failed", "canceled", "rejected"] as const) {
    const moves: readonly Move[] = Object.values(MOVES).filter((move: Move) => move.from.includes(state));
    expect(
      moves.filter(({ to, event, lease, queue }) => to.length > 0 || event || lease !== "none" || queue),
    ).toEqual([]);
    const id = await lifecycle.inState(state);
    const before = await dump(lifecycle.redis);
    lifecycle.clock.offset_ms = 3_500_000;
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
    expect(await dump(lifecycle.redis)).toEqual(before);
    lifecycle.clock.offset_ms = 0;
  }
});

test("live indexes have exactly the live delegations, by state; the due set has all, finished ones until they are deleted", async () => {
  const lifecycle = await openLifecycle();
  const keys = lifecycle.shards.at(0);
  const ids = new Map<State, string>();
  for (const state of stateSchema.options) ids.set(state, await lifecycle.inState(state));
  const live = (state: "submitted" | "working" | "interrupted") =>
    lifecycle.redis.zrange(keys.live("scout", state), "0", "-1");
  expect(await live("submitted")).toEqual([ids.get("submitted")]);
  expect(await live("working")).toEqual([ids.get("working")]);
  expect((await live("interrupted")).sort()).toEqual(
    [ids.get("input_required"), ids.get("auth_required")].sort(),
  );
  expect(await lifecycle.redis.zcard(keys.due)).toBe(9);
});
