/** The data of a waterfall: bars and questions from events, the axis, the rows of a tree, and the lines of events. */
import { describe, expect, test } from "vitest";
import {
  axisOf,
  type Base,
  baseOf,
  cutsOf,
  endedAxis,
  liveAxis,
  ticksOf,
} from "../../src/console/delegation/waterfall/axis.ts";
import { linesOf } from "../../src/console/delegation/waterfall/fold.ts";
import { type Node, nodeAfter } from "../../src/console/delegation/waterfall/node.ts";
import { questionsFrom, questionsOf } from "../../src/console/delegation/waterfall/questions.ts";
import { questionText, rowText, spanText } from "../../src/console/delegation/waterfall/row-text.ts";
import { rowsOf } from "../../src/console/delegation/waterfall/rows.ts";
import { spansOf, visibleSpans } from "../../src/console/delegation/waterfall/spans.ts";
import type { Message } from "../../src/schema/a2a.ts";
import { isTerminal } from "../../src/schema/delegation.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { eventWith } from "../support/event.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const iso = (second: number): string => new Date(START + second * 1000).toISOString();

const STATES: Readonly<Record<string, DelegationEvent["state"]>> = {
  leased: "working",
  reclaimed: "working",
  progress: "working",
  artifact: "working",
  interrupted: "input_required",
  awaiting: "awaiting_children",
  completed: "completed",
  failed: "failed",
};

function event(seq: number, second: number, status: string, more: object = {}): DelegationEvent {
  const state = STATES[status] ?? "submitted";
  return eventWith({ seq, at: iso(second), state, ...(!isTerminal(state) && { status }), ...more });
}

function node(more: Partial<Node> = {}): Node {
  return {
    ...{
      id: "a",
      parent_id: null,
      state: "submitted",
      version: 1,
      target: "scout",
      attempt: 1,
      max_attempts: 3,
    },
    ...{ created_at: iso(0), finished_at: null, not_before_at: null, leased_at: null, questions: [] },
    ...{ task: "Look around", usage: undefined },
    ...more,
  };
}

const seconds = (ms: number | null) => ms && (ms - START) / 1000;

describe("bars", () => {
  const drawn = (of: Node, events: readonly DelegationEvent[]) =>
    spansOf(of, events).map(
      ({ look, from, to, attempt }) =>
        `${look} ${seconds(from)}-${seconds(to) ?? ""}${attempt === null ? "" : ` (${attempt})`}`,
    );

  test("attempts: queued, failed, the pause until the next one, and the one that goes on", () => {
    const events = [
      event(1, 0, "queued"),
      event(2, 2, "leased", { attempt: 1 }),
      event(3, 5, "progress"),
      event(4, 10, "retrying", { attempt: 1, retry_at: iso(30) }),
      event(5, 31, "leased", { attempt: 2 }),
    ];
    const all = ["queued 0-2", "failed 2-10 (1)", "pause 10-30", "queued 30-31", "working 31- (2)"];
    expect(drawn(node({ state: "working" }), events)).toEqual(all);
    // It waits still: until then, no worker may take it.
    expect(drawn(node(), events.slice(0, 4))).toEqual([...all.slice(0, 3), "queued 30-"]);
  });

  test("the wait for parts is a bar of its own, between two of the same attempt, and names their agents", () => {
    const children = [2, 3, 4].map((end) => `dlg_0_${"0".repeat(25)}${end}`);
    const awaits = { children, left: 3, expires_at: iso(600) };
    const events = [
      event(1, 0, "queued"),
      event(2, 2, "leased", { attempt: 1 }),
      event(3, 5, "awaiting", { awaits: { ...awaits, count: 3 } }),
      event(4, 20, "resumed"),
      event(5, 21, "leased", { attempt: 1 }),
      event(6, 30, "completed"),
    ];
    const ended = node({ state: "completed", finished_at: iso(30) });
    const all = ["queued 0-2", "completed 2-5 (1)", "awaits 5-20 (1)", "queued 20-21", "completed 21-30 (1)"];
    expect(drawn(ended, events)).toEqual(all);
    const [, , wait] = spansOf(ended, events);
    const agents = new Map(children.map((id, at) => [id, at === 1 ? "coder" : "scout"]));
    expect(wait && spanText(wait, ended, START, agents)).toBe(
      "waits for 3 parts: scout (2), coder · 0:05 – 0:20 · 15 s",
    );
    const waits = node({ state: "awaiting_children", awaits });
    const row = { node: waits, below: 3, isOpen: true };
    expect(rowText(row, START + 9_000, agents)).toBe(
      "scout: Look around, waits for 3 parts: scout (2), coder, delegated 9 s ago",
    );
  });

  test("a lapsed lease that is reclaimed goes on with its attempt", () => {
    const events = [
      event(1, 0, "queued"),
      event(2, 2, "leased", { attempt: 1 }),
      event(3, 10, "lease_expired", { attempt: 1 }),
      event(4, 12, "reclaimed", { attempt: 1 }),
      event(5, 20, "completed"),
    ];
    const ended = node({ state: "completed", finished_at: iso(20) });
    expect(drawn(ended, events)).toEqual([
      "queued 0-2",
      "completed 2-10 (1)",
      "queued 10-12",
      "completed 12-20 (1)",
    ]);
  });

  test("a question waits for a person, held or parked, and its attempt ends as the delegation did", () => {
    const events = [
      event(1, 0, "delayed"),
      event(2, 60, "leased", { attempt: 1 }),
      event(3, 70, "interrupted"),
      event(4, 75, "parked", { state: "input_required" }),
      event(5, 100, "answered"),
      event(6, 101, "leased", { attempt: 1 }),
      event(7, 110, "failed"),
    ];
    const ended = node({ state: "failed", finished_at: iso(110), not_before_at: iso(50) });
    expect(drawn(ended, events)).toEqual([
      ...["pause 0-50", "queued 50-60", "failed 60-70 (1)", "asks 70-100 (1)", "queued 100-101 (1)"],
      "failed 101-110 (1)",
    ]);
  });

  test("without its events, a delegation says what it knows", () => {
    const without = (more: Partial<Node>) => drawn(node(more), []);
    expect(without({})).toEqual(["queued 0-"]);
    expect(without({ state: "working", leased_at: iso(4) })).toEqual(["queued 0-4", "working 4- (1)"]);
    expect(without({ state: "canceled", finished_at: iso(9) })).toEqual(["canceled 0-9 (1)"]);
  });

  test("a thousand bars are drawn as those that can be told apart", () => {
    const events = Array.from({ length: 2_000 }, (_, index) =>
      event(index + 1, index, index % 2 === 0 ? "retrying" : "leased", {
        attempt: Math.ceil((index + 1) / 2),
      }),
    );
    const { place } = axisOf(START, START + 2_000_000);
    const shown = visibleSpans(spansOf(node({ state: "working" }), events), place);
    expect(shown.length).toBeLessThanOrEqual(602);
    expect(seconds(shown.at(-1)?.to ?? null)).toBeNull();
    // A failure of a moment is not lost among them.
    const looks = (step: number) => {
      const short = [
        event(1, 0, "queued"),
        event(2, 0.01, "leased", { attempt: 1 }),
        event(3, 0.02, "retrying", { attempt: 1, retry_at: iso(step) }),
        event(4, step + 0.01, "leased", { attempt: 2 }),
      ];
      return visibleSpans(spansOf(node({ state: "working" }), short), place).map(({ look }) => look);
    };
    expect(looks(0.5)).toEqual(["failed", "working"]);
    expect(looks(500)).toEqual(["failed", "pause", "queued", "working"]);
  });

  test("a bar says its attempt, its time and its length", () => {
    const of = node({ attempt: 2, state: "working" });
    const events = [event(1, 0, "queued"), event(2, 12, "leased", { attempt: 2 }), event(3, 194, "retrying")];
    expect(spansOf(of, events).map((span) => spanText(span, of, START))).toEqual([
      "queued · 0:00 – 0:12 · 12 s",
      "attempt 2 · failed · 0:12 – 3:14 · 3 min 2 s",
      "queued · since 3:14",
    ]);
  });
});

describe("questions", () => {
  const said = (text: string) => ({ messageId: "m", role: "ROLE_AGENT", parts: [{ text }] });
  const question = (id: string, ...requests: readonly object[]) => ({
    ...{ id, kind: "input", requests, raised_at: iso(0), expires_at: iso(999) },
  });
  const asked = (id: string, text: string) => ({
    interrupt: question(id, { request_id: "r", message: said(text) }),
  });

  test("who answered what, and after how long", () => {
    const events = [
      event(1, 0, "interrupted", asked("q1", "# May I?\nIt is late.")),
      event(2, 124, "answered", { interrupt_id: "q1", by: "caller:ann", decision: "approve" }),
      event(3, 130, "interrupted", asked("q2", "Which branch?")),
      event(4, 140, "answered", { by: "approver:ben", answer_preview: "main" }),
      event(5, 150, "interrupted", asked("q3", "Now?")),
      event(6, 160, "failed"),
      event(7, 170, "interrupted", asked("q4", "And now?")),
    ];
    expect(questionsOf(events).map((one) => questionText(one, START))).toEqual([
      "0:00 asked: May I? It is late. · approved by ann after 2 min 4 s",
      "2:10 asked: Which branch? · answered by approver ben after 10 s: main",
      "2:30 asked: Now? · not answered after 10 s",
      "2:50 asked: And now? · open",
    ]);
  });

  test("an answer by a schema, or to a question that is not known, is not repeated: it may be a secret", () => {
    const request = { request_id: "r", message: said("Sign in?"), schema: { type: "object" } };
    const answered = { by: "caller:ann", answer_preview: '{"password":"hunter2"}' };
    const events = [
      event(1, 0, "queued"),
      event(2, 1, "interrupted", { interrupt: question("q1", request) }),
      event(3, 2, "answered", answered),
      event(5, 4, "answered", answered),
    ];
    const texts = questionsOf(events).map((one) => questionText(one, START));
    expect(texts).toHaveLength(1);
    expect(texts.join()).not.toContain("hunter2");
  });

  test("without events, the delegation has the answers and the open question", () => {
    const metadata = { interrupt_id: "q1", by: "caller:ann", at: iso(30), decision: "deny" };
    const history: Message[] = [
      { messageId: "1", role: "ROLE_AGENT", parts: [{ text: "May I?" }] },
      { messageId: "2", role: "ROLE_USER", parts: [], metadata },
      { messageId: "3", role: "ROLE_USER", parts: [{ text: "Hurry" }], metadata: { by: "caller:ann" } },
    ];
    const found = questionsFrom({ history, interrupt: null });
    expect(found.map((one) => questionText(one, START))).toEqual(["0:30 a question · denied by ann"]);
  });
});

describe("the axis", () => {
  const base = (...at: number[]): Base =>
    baseOf(
      START,
      at.map((second) => START + second * 1000),
    );
  const labels = (...args: Parameters<typeof axisOf>) => ticksOf(axisOf(...args)).map(({ label }) => label);

  test.each([
    [300, ["0", "100 ms", "200 ms", "300 ms"]],
    [4_000, ["0", "0:01", "0:02", "0:03", "0:04"]],
    [45_000, ["0", "0:15", "0:30", "0:45"]],
    [4 * MINUTE, ["0", "1 min", "2 min", "3 min", "4 min"]],
    [95 * MINUTE, ["0", "30 min", "1:00 h", "1:30 h"]],
    [5 * HOUR, ["0", "2 h", "4 h"]],
    [30 * HOUR, ["0", "12 h", "1 d"]],
    [400 * 24 * HOUR, ["0", "365 d"]],
  ])("the unit of the ticks fits a span of %d ms", (ms, expected) => {
    expect(labels(START, START + ms)).toEqual(expected);
  });

  test("a silence that would leave no room for the rest is cut, and says where", () => {
    const night = base(60, 120, 50_120, 50_180);
    const axis = endedAxis(night);
    expect(axis.cuts.map(({ from, to }) => [seconds(from), seconds(to)])).toEqual([[120, 50_120]]);
    const places = [0, 60, 120, 25_120, 50_120, 50_180].map((at) => axis.place(START + at * 1000));
    // The cut takes 12 parts where the 180 seconds take 100.
    const expected = [0, 60, 120, 130.8, 141.6, 201.6].map((drawn) => drawn / 201.6);
    for (const [index, place] of places.entries()) expect(place).toBeCloseTo(expected[index] ?? 0);
    expect(ticksOf(axis).map(({ label }) => label)).toEqual(["0", "1 min", "13:56 h"]);
    // A moment between two of them is part of one.
    const lapse = endedAxis(base(60, 120, 20_000, 50_000));
    expect(lapse.cuts.map(({ from, to }) => [seconds(from), seconds(to)])).toEqual([[120, 50_000]]);
    // Not if it leaves room, if there is nothing else, or if it is one of many.
    expect(endedAxis(base(60, 120, 500)).cuts).toEqual([]);
    expect(cutsOf(base(), START + 10 * HOUR)).toEqual([]);
    const rhythm = base(
      ...Array.from({ length: 20 }, (_, hour) => [hour * 3600 + 10, hour * 3600 + 20]).flat(),
    );
    expect(endedAxis(rhythm).cuts).toEqual([]);
  });

  test("live work has room after now, and the axis changes seldom", () => {
    const ends = Array.from({ length: 60 }, (_, second) => liveAxis(base(1), START + second * 1000).end);
    expect(new Set(ends).size).toBeLessThan(20);
    for (const [second, end] of ends.entries()) {
      expect(end).toBeGreaterThan(START + second * 1000);
      expect(end).toBeGreaterThanOrEqual(ends[second - 1] ?? 0);
    }
    // A silence that goes on is cut, and ends now.
    const now = START + 14 * HOUR;
    expect(liveAxis(base(60, 120), now)).toMatchObject({ end: now, cuts: [{ to: now }] });
  });
});

describe("rows", () => {
  const one = (id: string, parent_id: string | null, second = 0) =>
    node({ id, parent_id, created_at: iso(second), task: id });
  const shown = (rows: ReturnType<typeof rowsOf>) =>
    rows.map(({ node: { id }, level, lines, isLast, isAbove, isOrphan }) => {
      const branch =
        level === 1 ? "" : `${lines.map((on) => (on ? "│" : " ")).join("")}${isLast ? "└" : "├"}`;
      return `${branch}${id}${isAbove ? " above" : ""}${isOrphan ? " orphan" : ""}`;
    });

  test("each stands below its real parent, the oldest first, under those above", () => {
    const nodes = [
      one("r", "p"),
      one("b", "r", 2),
      one("d", "a", 9),
      one("c", "a", 3),
      one("a", "r", 1),
      one("x", "gone", 4),
    ];
    const given = { above: [one("top", null), one("p", "top")], nodes, id: "r" };
    const rows = rowsOf({ ...given, closed: new Set() });
    expect(shown(rows)).toEqual([
      ...["top above", "└p above", " └r", "  ├a", "  │├c", "  │└d", "  ├b", "  └x orphan"],
    ]);
    expect(rows.map(({ below }) => below)).toEqual([0, 0, 5, 2, 0, 0, 0, 0]);
    const closed = rowsOf({ ...given, closed: new Set(["a"]) });
    expect(shown(closed)).toEqual(["top above", "└p above", " └r", "  ├a", "  ├b", "  └x orphan"]);
    const hidden = closed.find((row) => row.node.id === "a");
    expect(hidden && rowText(hidden, START)).toMatch(/, 2 under it are hidden$/);
  });

  test("a row says who does what, how it is, and which attempt", () => {
    const text = (more: Partial<Node>, now = START + 95_000) =>
      rowText({ node: node({ task: "Fix it", target: "coder", ...more }), below: 0, isOpen: true }, now);
    expect(text({ state: "completed", finished_at: iso(182), attempt: 2 })).toBe(
      "coder: Fix it, completed in 3 min 2 s, attempt 2 of 3",
    );
    expect(text({ state: "working" })).toBe("coder: Fix it, working, delegated 1 min 35 s ago");
  });

  test("events keep a row current; a missing one, or a question, makes it read again", () => {
    const leased = nodeAfter(node(), event(2, 3, "leased", { attempt: 1 }));
    expect(leased).toMatchObject({ state: "working", version: 2, leased_at: iso(3) });
    const failed = nodeAfter(node({ version: 2 }), event(3, 9, "failed", { attempt: 2 }));
    expect(failed).toMatchObject({ state: "failed", finished_at: iso(9), attempt: 2, leased_at: null });
    const used = nodeAfter(node(), event(2, 3, "progress", { usage: { input_tokens: 7 } }));
    expect(used?.usage?.total).toEqual({ input_tokens: 7, complete: false });
    expect(nodeAfter(node(), event(2, 3, "completed", { usage: { input_tokens: 9 } }))).toBeNull();
    expect(nodeAfter(node(), event(3, 3, "leased"))).toBeNull();
    expect(nodeAfter(node(), event(2, 3, "interrupted"))).toBeNull();
  });
});

test("a run of progress is one line, which keeps its key as it grows, and opens", () => {
  const artifact = { artifact: { artifactId: "log", name: "log.txt", parts: [] } };
  const events = [
    event(1, 0, "queued"),
    event(2, 1, "leased"),
    event(3, 2, "progress"),
    event(4, 3, "progress"),
    event(5, 100, "progress"),
    event(6, 101, "artifact", artifact),
    event(7, 102, "artifact", artifact),
    event(8, 103, "artifact", { artifact: { artifactId: "other", parts: [] } }),
    event(9, 104, "progress"),
  ];
  const shown = (newestFirst: boolean, open: readonly string[] = [], of = events) =>
    linesOf(of, new Set(open), newestFirst).map(
      ({ key, event: { seq }, times, isInRun }) => `${isInRun ? "· " : ""}${key}: ${seq} x${times}`,
    );
  const all = ["1: 1 x1", "2: 2 x1", "run 3: 5 x3", "run 6: 7 x2", "run 8: 8 x1", "run 9: 9 x1"];
  expect(shown(false)).toEqual(all);
  expect(shown(true)).toEqual([...all].reverse());
  const inRun = ["· 3: 3 x1", "· 4: 4 x1", "· 5: 5 x1"];
  expect(shown(false, ["run 3"])).toEqual([...all.slice(0, 3), ...inRun, ...all.slice(3)]);
  expect(shown(true, ["run 3"]).slice(4, 7)).toEqual([...inRun].reverse());
  expect(shown(false, [], events.slice(0, 3)).at(-1)).toBe("run 3: 3 x1");
  // The pause before a run is that before its first event.
  expect(linesOf(events, new Set(), false).map(({ pauseMs }) => pauseMs / 1000)).toEqual([0, 1, 1, 1, 1, 1]);
});
