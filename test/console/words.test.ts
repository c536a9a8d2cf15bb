/** What the console says in words, and the scale and the colours with which it draws. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { auditText, isOfKind, KINDS, type Kind, ownersOf } from "../../src/console/agents/audit-text.ts";
import { inUnits, toSeconds } from "../../src/console/agents/duration.ts";
import { TIMES, topOf } from "../../src/console/charts/scale.ts";
import { eventText, offsetText } from "../../src/console/delegation/event-text.ts";
import { replyFile } from "../../src/console/delegation/reply-actions.tsx";
import { isFlat } from "../../src/console/ui/flat.ts";
import { queuedText } from "../../src/console/ui/queued-text.ts";
import { plainTitle, quietText, taskText } from "../../src/console/ui/words.ts";
import { eventWith } from "../support/event.ts";

const NOW = Date.parse("2026-01-01T12:00:00.000Z");
const QUEUED = { state: "submitted", not_before_at: null, attempt: 1 } as const;
const AGENT = {
  paused: false,
  presence: { state: "online", last_seen_at: null, pollers: 1 },
  counts: { waiting: 1, delayed: 0, working: 0, interrupted: 0, awaiting: 0 },
  delivery: { mode: "poll" },
} as const;
const AWAY = { state: "offline", last_seen_at: null, pollers: 0 } as const;
const LIMITS = {
  ...{ max_attempts: 3, lease_seconds: 60, max_working: 2 },
  ...{ max_waiting: 10_000, interrupt_ttl_seconds: 86_400 },
};

test("one that waits for its turn in its conversation says so, until its turn comes", () => {
  const behind = "dlg_0_00000000000000000000000001";
  expect([queuedText({ ...QUEUED, behind }, AGENT, NOW), queuedText({ ...QUEUED }, AGENT, NOW)]).toEqual([
    "queued: waits for another of its conversation",
    "queued",
  ]);
});

test("a queued delegation says in a few words why it waits", () => {
  const of = (agent?: Parameters<typeof queuedText>[1], listed: Parameters<typeof queuedText>[0] = QUEUED) =>
    queuedText(listed, agent, NOW);
  const working = { ...AGENT.counts, working: 2 };
  expect([
    of(),
    of(AGENT),
    of({ ...AGENT, counts: { ...AGENT.counts, waiting: 1493 } }),
    of({ ...AGENT, paused: true }),
    of({ ...AGENT, presence: AWAY }),
    of({ ...AGENT, presence: AWAY, delivery: { mode: "push" } }),
    of({ ...AGENT, presence: AWAY, counts: working }),
    of({ ...AGENT, limits: LIMITS, counts: working }),
    of(AGENT, { ...QUEUED, not_before_at: "2026-01-01T12:05:00.000Z" }),
    of({ ...AGENT, paused: true }, { ...QUEUED, attempt: 2 }),
  ]).toEqual([
    "queued",
    "queued",
    "queued: one of 1,493",
    "queued: paused",
    "queued: no worker",
    "queued: cannot be reached",
    "queued: no worker is free",
    "queued: agent at its limit of 2",
    "queued: starts in 5 min",
    "queued for attempt 2: paused",
  ]);
});

test("a task that was cut shows its end if it is short, and only its beginning otherwise", () => {
  const textOf = (text: string) =>
    taskText({
      task_preview: text.slice(0, 100),
      message: { messageId: "m", role: "ROLE_USER", parts: [{ text }] },
    });
  expect(textOf(`${"x".repeat(110)} (117)`)).toBe(`${"x".repeat(80)}… (117)`);
  expect(textOf(`${"x".repeat(300)} (117)`)).toBe(`${"x".repeat(100)}…`);
  expect(textOf("Short (117)")).toBe("Short (117)");
  // Words are not cut, unless they are very long.
  const long =
    "Find out why the nightly build takes twice as long since Tuesday and propose what to do about it today";
  expect(textOf(long)).toBe(
    "Find out why the nightly build takes twice as long since Tuesday and propose… do about it today",
  );
  expect(taskText({ task_preview: long.slice(0, 100) })).toBe(`${long.slice(0, 96)}…`);
  // The end is not cut inside a character.
  expect(textOf(`${"x".repeat(110)}${"👍".repeat(20)}`)).toBe(`${"x".repeat(80)}…${"👍".repeat(20)}`);
});

test.each([
  [
    "# Search relevance regression\n\nSince **Tuesday** the top-3 hit rate dropped",
    "Search relevance regression …",
  ],
  ["Refactor `billing/invoice.ts`:\n\n```ts\nexport {}\n```", "Refactor billing/invoice.ts: …"],
  ["\n\n> **Ask** before [you](https://a.example) change it", "Ask before you change it"],
  ["1. Compare the index builds\n2. Check the synonyms", "Compare the index builds …"],
  // A line that says too little goes on with the next one.
  ["Hello,\nplease deploy search\n2.4.1", "Hello, please deploy search …"],
  ["```sh\nmake\n```", "make"],
  // These texts look like Markdown, and are not.
  ["#4812 fails: 2 ** 10 `", "#4812 fails: 2 ** 10 `"],
  ["3. Quartal: select * from a * b", "3. Quartal: select * from a * b"],
  ["-1 is wrong", "-1 is wrong"],
  ["…", "…"],
])("the title of a task has no signs of Markdown: %j", (text, title) => {
  expect(plainTitle(text)).toBe(title);
  expect(taskText({ task_preview: text })).toBe(title);
});

test("a task that was cut after its first line ends with one ellipsis", () => {
  const text = `# A heading that says it all\n${"x".repeat(100)}`;
  expect(taskText({ task_preview: text.slice(0, 100), task_end: "the end" })).toBe(
    "A heading that says it all …",
  );
  expect(taskText({ task_preview: `**All** ${"x".repeat(92)}` })).toBe(`All ${"x".repeat(92)}…`);
});

test("the time since the first event says seconds, also after a minute and after an hour", () => {
  const offsets = [0, 12_340, 60_000, 727_900, 3_727_000, 90_000_000].map((ms) => offsetText(ms, 90_000_000));
  expect(offsets).toEqual(["0:00", "0:12", "1:00", "12:07", "1:02:07", "25:00:00"]);
  // If all is over within a minute, seconds would not tell the events apart.
  expect([0, 12_340].map((ms) => offsetText(ms, 12_340))).toEqual(["0:00.0", "0:12.3"]);
  // Of events in the same second, it says which came first.
  expect([0, 7, 42.5, 942].map((ms) => offsetText(ms, 942))).toEqual([
    "0:00.000",
    "0:00.007",
    "0:00.042",
    "0:00.942",
  ]);
});

test("durations are in the largest unit that says them exactly, and keep their seconds", () => {
  const all = [1, 90, 5400, 3600, 86_400, 90_000, 2.5, 604_800];
  expect(all.map((seconds) => Object.values(inUnits(seconds)).join(" "))).toEqual([
    "1 seconds",
    "90 seconds",
    "90 minutes",
    "1 hours",
    "1 days",
    "25 hours",
    "2.5 seconds",
    "7 days",
  ]);
  expect(all.map((seconds) => inUnits(seconds)).map(({ number, unit }) => toSeconds(number, unit))).toEqual(
    all,
  );
  expect(toSeconds(0.1, "minutes")).toBe(6);
});

test("the log can be narrowed, and sign-ins are no changes", () => {
  const actions = [
    "session.create",
    "token.revoke",
    "agent.pause",
    "delegations.cancel",
    "schedule.run",
    "rule.revoke",
    "subscription.delete",
    "link.answer",
  ] as const;
  const of = (kind: Kind) => actions.filter((action) => isOfKind({ action }, kind));
  expect(KINDS.map(([kind]) => of(kind).join())).toEqual([
    "token.revoke,agent.pause,delegations.cancel,schedule.run,rule.revoke,subscription.delete,link.answer",
    "agent.pause",
    "token.revoke",
    "delegations.cancel",
    "schedule.run",
    "rule.revoke",
    "subscription.delete",
    "link.answer",
    "session.create",
    actions.join(),
  ]);
});

test("a day has 24 hours", () => {
  const retry_at = new Date(2026, 0, 1, 19, 47).toISOString();
  const retrying = eventWith({ seq: 1, at: retry_at, retry_at, state: "submitted", status: "retrying" });
  expect(eventText(retrying)).toMatch(/again at 19:47:00$/);
});

test("work is quiet ten minutes after its last report", () => {
  const at = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString();
  const work = { state: "working", progress: { done: 7 }, updated_at: at(32) } as const;
  expect([
    quietText(work, NOW),
    quietText({ ...work, updated_at: at(9) }, NOW),
    quietText({ ...work, progress: null }, NOW),
    quietText({ ...work, state: "input_required" }, NOW),
  ]).toEqual(["No report for 32 min", "", "", ""]);
});

test("a reply is copied and downloaded as its text, or as JSON if it is more than text", () => {
  const markdown = { text: "# Memo", mediaType: "text/markdown" };
  const files = [
    [{ text: "Done." }],
    [markdown],
    [{ text: "" }, { data: { words: 3 } }],
    [markdown, { url: "u" }],
    [],
  ];
  expect(files.map((parts) => replyFile({ parts })).map(({ text, ending }) => `${ending}: ${text}`)).toEqual([
    "txt: Done.",
    "md: # Memo",
    'json: {\n  "words": 3\n}',
    `json: ${JSON.stringify([markdown, { url: "u" }], null, 2)}`,
    "txt: ",
  ]);
});

test("arguments are a table while each is a scalar or a short list of scalars", () => {
  const values = [
    { a: 1, b: ["#ops", "#checkout"], c: [] },
    { a: [null, 1] },
    { a: [[1]] },
    { a: [{}] },
    { a: {} },
    [1],
    {},
  ];
  expect(values.map(isFlat)).toEqual([true, true, false, false, false, false, false]);
  expect([20, 21].map((length) => isFlat({ a: Array.from({ length }, () => 1) }))).toEqual([true, false]);
});

test("the audit log says whose token was created and revoked", () => {
  const log = [
    { action: "token.revoke", subject: "t1", by: "operator", details: {} },
    { action: "token.create", subject: "t1", by: "operator", details: { principal: "agent:coder" } },
    { action: "token.revoke", subject: "t0", by: "operator", details: {} },
    { action: "session.create", subject: "ses_1", by: "caller:alice", details: {} },
    { action: "session.revoke", subject: "ses_1", by: "operator", details: {} },
    { action: "delegations.cancel", subject: "coder", by: "operator", details: { count: 2 } },
    { action: "delegation.erase", subject: "dlg_0123456789abcdef", by: "operator", details: {} },
    { action: "agent.pause", subject: "coder", by: "operator", details: {} },
    { action: "schedule.run", subject: "sch_0123456789abcdef", by: "operator", details: {} },
    { action: "rule.create", subject: "rul_0123456789abcdef", by: "operator", details: {} },
  ] as const;
  const owners = ownersOf(log);
  expect(log.map((entry) => Object.values(auditText(entry, owners)).join(" ").trim())).toEqual([
    "revoked the token of agent:coder",
    "created a token for agent:coder",
    "revoked the token of t0",
    "signed in",
    "ended the session of caller:alice",
    "canceled 2 delegations of coder",
    "erased the delegation …89abcdef",
    "paused the agent coder",
    "ran the schedule …89abcdef",
    "created the rule …89abcdef",
  ]);
});

test("the scale of a chart ends at a round value not far above the highest one", () => {
  expect([0, 1, 2, 3, 7, 9, 11, 15, 21, 101, 2132, 9001].map((most) => topOf(most))).toEqual([
    1, 1, 2, 3, 8, 10, 15, 15, 25, 150, 2500, 10_000,
  ]);
  expect([0.29, 174, 86_401].map((most) => topOf(most, TIMES))).toEqual([0.5, 180, 172_800]);
});

/** The contrast of two colours (WCAG 2), `#rrggbb`. */
function contrast(one: string, other: string): number {
  const luminance = (color: string): number =>
    [1, 3, 5]
      .map((from) => Number.parseInt(color.slice(from, from + 2), 16) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, index) => sum + part * ([0.2126, 0.7152, 0.0722][index] ?? 0), 0);
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

test("the edges of fields and bars stand out from every surface, light and dark (WCAG 1.4.11)", () => {
  const tokens = readFileSync(new URL("../../src/console/styles/tokens.css", import.meta.url), "utf8");
  const themes = [...tokens.matchAll(/^(?::root|\[data-theme="dark"\]) \{$([^}]*--control[^}]*)\}/gm)];
  expect(themes.length).toBe(2);
  for (const [, theme = ""] of themes) {
    const colors = new Map(
      [...theme.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name, value]) => [name, value]),
    );
    for (const surface of ["background", "raised", "hover", "code"])
      expect(
        contrast(colors.get("control") ?? "", colors.get(surface) ?? ""),
        `control on ${surface}`,
      ).toBeGreaterThanOrEqual(3);
  }
});
