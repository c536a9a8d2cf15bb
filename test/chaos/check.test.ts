/** Tests the checker: it finds nothing in legal histories, and each kind of damage is found by its rule. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check, RULES, type RuleName } from "./check/check.ts";
import { unmoved } from "./dump.ts";
import { ACTION, type Draft, histories, SECRET, saying } from "./generate.ts";
import { emptyHistory, type ShownAnswer } from "./history.ts";
import { COUNCIL } from "./setup.ts";

const first = <T>(items: readonly T[]): T => {
  const [item] = items;
  if (item === undefined) throw new Error("nothing there");
  return item;
};

/** A question at 50, with votes and the answer, each 50 ms after the other. */
function askedAndAnswered({ dump, stored }: Draft, target: string, ...answers: readonly ShownAnswer[]): void {
  const id = "dlg_0_asked";
  const asked = { id: "int_x", kind: "input", actions: [ACTION] };
  const shown = { type: "DELEGATION_STATUS", state: "input_required", hash: "x" };
  dump.records.push({ ...first(dump.records), id, target, context: "other" });
  stored.set(id, [
    { ...shown, seq: 1, status: "interrupted", at: 50, asked },
    ...answers.map((answer, n) => {
      const status = n === answers.length - 1 ? "answered" : "voted";
      return { ...shown, seq: n + 2, status, at: 50 * (n + 2), answer };
    }),
  ]);
}

/** Rule → damages a clean history. */
const DAMAGE: Record<RuleName, (history: Draft) => void> = {
  lost: ({ dump, stored, finals }) => {
    const { id } = first(dump.records);
    dump.records.shift();
    stored.delete(id);
    for (const final of finals) if (final.id === id) Object.assign(final, { found: false });
  },
  doubled: ({ calls }) => {
    calls.push({ ...first(calls), id: "dlg_0_other" });
  },
  phantom: ({ dump }) => {
    first(dump.records).key = "nobody's";
  },
  unfinished: ({ dump }) => {
    first(dump.records).state = "working";
  },
  uncanceled: ({ calls, dump }) => {
    const { id, state } = first(dump.records);
    if (state === "canceled") first(dump.records).state = "completed";
    calls.push({ proc: "p", op: "cancel", id, start: 1, end: 2, result: "ok" });
  },
  gap: ({ stored }) => {
    first([...stored.values()]).shift();
  },
  "two-ends": ({ stored }) => {
    const events = first([...stored.values()]);
    const last = events.at(-1);
    if (last) events.push({ ...last, seq: events.length + 1 });
  },
  "illegal-move": ({ stored }) => {
    Object.assign(first(first([...stored.values()])), { type: "DELEGATION_STATUS", status: "leased" });
  },
  fork: ({ events }) => {
    first(events).hash = "another";
  },
  missed: ({ events }) => {
    events.pop();
  },
  repeated: ({ events }) => {
    events.push(first(events));
  },
  reset: ({ resets }) => {
    resets.push({ t: 1, proc: "s", row: "reset", sub: "s", cursor: "1" });
  },
  "foreign-read": ({ calls }) => {
    calls.push({ proc: "p", op: "foreign", as: "caller:bob", start: 1, end: 2, result: "ok", status: 200 });
  },
  fence: ({ calls }) => {
    const grant = { id: "dlg_0_0", lease: "lse_0_9", fence: 9, attempt: 1, granted_at: 1 };
    for (const granted_at of [1, 2]) {
      calls.push({
        proc: "p",
        op: "lease",
        start: 1,
        end: 2,
        result: "ok",
        grants: [{ ...grant, granted_at }],
      });
    }
  },
  "stale-lease": ({ calls }) => {
    const grant = { id: "dlg_0_0", lease: "lse_0_9", fence: 9, attempt: 1, granted_at: 10 ** 9 };
    calls.push({ proc: "p", op: "lease", start: 1, end: 2, result: "ok", grants: [grant] });
    calls.push({ proc: "p", op: "heartbeat", id: "dlg_0_0", fence: 1, start: 3, end: 4, result: "ok" });
  },
  "two-replies": ({ calls }) => {
    for (const lease of ["lse_0_1", "lse_0_2"]) {
      const reply = {
        id: "dlg_0_0",
        lease,
        fence: 9,
        wants: "completed",
        outcome: "matched",
        state: "completed",
      };
      calls.push({ proc: "p", op: "reply", start: 1, end: 2, result: "ok", ...reply });
    }
  },
  "lost-reply": ({ calls }) => {
    const reply = { id: "dlg_0_0", lease: "lse_0_9", fence: 9, wants: "completed", text: "something else" };
    calls.push({ proc: "p", op: "reply", start: 1, end: 2, result: "ok", outcome: "matched", ...reply });
  },
  "used-twice": ({ calls }) => {
    for (const own of [1, 2]) {
      const use = { id: "dlg_0_0", asked: "int_1 may", used: "now", fence: own, use_key: "k" };
      calls.push({ proc: "p", op: "use", start: 1, end: 2, result: "ok", ...use });
    }
  },
  "woken-early": ({ calls }) => {
    const grant = { id: "dlg_0_0", lease: "lse_0_99", fence: 99, attempt: 1, granted_at: 99_000, unended: 1 };
    calls.push({ proc: "p", op: "lease", start: 98_000, end: 99_500, result: "ok", grants: [grant] });
  },
  "out-of-turn": ({ dump, stored }) => {
    for (const n of [1, 2]) {
      const id = `dlg_0_turn${n}`;
      dump.records.push({ ...first(dump.records), id, key: "turns", context: "other" });
      const events = [
        { seq: 1, type: "DELEGATION_SENT", status: "queued", state: "submitted", at: 10 * n },
        { seq: 2, type: "DELEGATION_STATUS", status: "leased", state: "working", at: 100 - n },
      ];
      stored.set(
        id,
        events.map((event) => ({ ...event, hash: "x" })),
      );
    }
  },
  miscounted: ({ finals }) => {
    const { budget } = first(finals);
    if (budget) first(finals).budget = { ...budget, used: { ...budget.used, tokens: 999 } };
  },
  overspent: ({ finals }) => {
    first(finals).error = "budget_exceeded";
  },
  unreported: ({ dump }) => {
    first(dump.records).spends = true;
  },
  charged: ({ stored, outages }) => {
    const shown = { type: "DELEGATION_STATUS", hash: "x" };
    outages.push({ t: 1, proc: "n", row: "outage", from: 2_000, to: 9_000 });
    stored.set("dlg_0_charged", [
      { ...shown, seq: 1, status: "leased", state: "working", at: 1_000, expires: 4_000, attempt: 1 },
      { ...shown, seq: 2, status: "lease_expired", state: "submitted", at: 9_100 },
    ]);
  },
  "revoked-rule": (history) => {
    askedAndAnswered(history, "scout", saying("int_x", "approver:ann", "approve", { rule: "rul_1" }));
    const to_ms = 99;
    history.calls.push({
      ...{ proc: "p", op: "revoke_rule", rule: "rul_1", to_ms },
      ...{ start: 1, end: 2, result: "ok" as const },
    });
  },
  overused: ({ rules }) => {
    first(rules).uses += 1;
  },
  misruled: (history) => {
    askedAndAnswered(history, "other", saying("int_x", "approver:ann", "approve", { rule: "rul_1" }));
  },
  outvoted: (history) => {
    const votes = ["approver:ann", "caller:ann"];
    const approve = (by: string) => saying("int_x", by, "approve", { votes });
    askedAndAnswered(history, COUNCIL, saying("int_x", "approver:ann", "approve"), approve("caller:ann"));
  },
  untold: (history) => {
    askedAndAnswered(history, COUNCIL, saying("int_x", "approver:ann", "deny"));
    const [end] = history.stored.get("dlg_0_asked")?.slice(-1) ?? [];
    if (end) Object.assign(end, { state: "canceled" });
    Object.assign(history.dump.records.at(-1) ?? {}, { state: "canceled" });
  },
  mistold: ({ notices }) => {
    const notice = {
      ...{
        t: 1,
        proc: "r",
        row: "notice" as const,
        subscription: "sub_1",
        as: "approver:ann",
        type: "question",
      },
      ...{ id: "dlg_0_unknown", what: "question int_1", count: 1, genuine: true },
    };
    notices.push({ ...notice, notice: "ntf_a" }, { ...notice, notice: "ntf_b" });
  },
  "dead-link": ({ calls }) => {
    const press = {
      ...{ proc: "r", op: "press", id: "dlg_0_unknown", asked: "int_x", link: "twice", text: "approver:ann" },
      ...{ start: 1, end: 2, result: "ok" as const },
    };
    calls.push({ ...press, decision: "approve" }, { ...press, decision: "deny" });
  },
  mismatch: ({ finals }) => {
    first(finals).hash = "another";
  },
  ticket: ({ waiting }) => {
    waiting.tickets.pop();
  },
  "delivery-forged": ({ deliveries }) => {
    deliveries.push({ ...first(deliveries), genuine: false });
  },
  undelivered: ({ deliveries }) => {
    deliveries.pop();
  },
  "a2a-order": ({ a2a }) => {
    a2a.push(first(a2a), { ...first(a2a), state: "TASK_STATE_WORKING" });
  },
  "ag-ui-order": ({ agui }) => {
    agui.push({ ...first(agui), type: "STATE_DELTA" });
  },
  "internal-error": ({ calls }) => {
    calls.push({ proc: "p", op: "read", start: 1, end: 2, result: "info", status: 500, code: "internal" });
  },
  leak: ({ logs }) => {
    logs.push({ source: "gateway-0", line: `{"msg":"signed with ${SECRET}"}` });
  },
  died: ({ deaths }) => {
    deaths.push("gateway-0 ended by itself (1)");
  },
};

const rulesOf = (history: Draft): string[] => check(history).violations.map(({ rule }) => rule);

describe("the checker", () => {
  it("finds nothing in legal histories", () => {
    fc.assert(
      fc.property(histories, (history) => {
        expect(check(history).violations).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it("has a rule and a damage for each name", () => {
    expect(Object.keys(DAMAGE).sort()).toEqual(Object.keys(RULES).sort());
  });

  it.each(Object.entries(DAMAGE))("finds %s", (rule, damage) => {
    fc.assert(
      fc.property(histories, (history) => {
        damage(history);
        expect(rulesOf(history)).toContain(rule);
      }),
      { numRuns: 50 },
    );
  });

  it("finds a lease of what used more than its budget, unless that was raised", () => {
    const found = (history: Draft, ...statuses: readonly string[]) => {
      const [id, events] = first([...history.stored]);
      const more = ["over_budget", ...statuses].map((status, at) => ({
        ...{ seq: events.length + at + 1, type: "DELEGATION_STATUS", status, state: "working", hash: "x" },
      }));
      return check({ ...history, stored: new Map([[id, [...events, ...more]]]) }).violations.some(
        ({ rule }) => rule === "overspent",
      );
    };
    fc.assert(
      fc.property(histories, (history) => {
        expect(found(history, "released", "leased")).toBe(true);
        expect(found(history, "progress", "interrupted", "answered", "leased")).toBe(false);
      }),
      { numRuns: 20 },
    );
  });

  it("lets a holder reclaim a lapsed lease after the broker's question, and not after another", () => {
    const charged = (...statuses: readonly string[]) => {
      const events = statuses.map((status, at) => ({
        ...{ seq: at + 1, type: "DELEGATION_STATUS", status, state: "working", hash: "x" },
      }));
      const found = check({ ...emptyHistory(), stored: new Map([["dlg_0_0", events]]) }).violations;
      return found.some(({ rule }) => rule === "charged");
    };
    expect(charged("leased", "lease_expired", "interrupted", "answered", "reclaimed")).toBe(false);
    expect(charged("leased", "interrupted", "answered", "reclaimed")).toBe(true);
  });

  it("counts an acknowledgement as void only with everysec, and only just before a kill of Redis", () => {
    fc.assert(
      fc.property(histories, fc.constantFrom(-10_000, -500, 10_000), (history, before) => {
        DAMAGE.lost(history);
        const { end } = first(history.calls);
        history.faults.push({
          t: end - before,
          proc: "n",
          row: "fault",
          fault: "redis-kill",
          on: "redis",
          phase: "begin",
        });
        expect(rulesOf(history)).toContain("lost");
        history.fsync = "everysec";
        const { violations, losses } = check(history);
        const rules = (before === -500 ? losses : violations).map(({ rule }) => rule);
        expect(rules).toContain("lost");
      }),
      { numRuns: 50 },
    );
  });
});

describe("two consecutive dumps", () => {
  const record = (id: string, version: number) => ({
    ...{ id, version, state: "submitted", ticket: version, fence: 0, target: "t", delegator: "d", key: "k" },
  });
  it("agree only on records that did not change between them", () => {
    const first = {
      records: [record("still", 1), record("moved", 1), record("gone", 1)],
      tickets: ["gone.1"],
    };
    const second = {
      records: [record("still", 1), record("moved", 2)],
      tickets: ["still.1", "moved.2", "none.1"],
    };
    expect(unmoved(first, second)).toEqual({
      records: [record("still", 1)],
      tickets: ["still.1", "none.1"],
    });
  });
});
