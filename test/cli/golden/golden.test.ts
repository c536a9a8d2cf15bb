/**
 * Compares the most common outputs, on a terminal of 80 columns, with the files beside this one. `npm run prove -- golden` updates
 * them: read the difference before you commit it.
 */
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runCli } from "../../../src/cli/run.ts";
import {
  AGENT,
  completedWith,
  delegationLike,
  eventLike,
  frame,
  leaseLike,
  stubBroker,
} from "../../client/stub-broker.ts";
import { host } from "../fake-host.ts";

const NOW = "2026-01-31T09:00:00.000Z";
const id = (letter: string) => `dlg_0_${letter.repeat(8)}${"0".repeat(18)}`;
const ago = (seconds: number) => new Date(Date.parse(NOW) - 1000 * seconds).toISOString();

const QUESTION = {
  id: "int_1",
  kind: "input",
  requests: [
    {
      request_id: "r",
      message: { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "Deploy release 7 to production?" }] },
      options: ["approve", "deny"],
    },
  ],
  raised_at: ago(60),
  expires_at: "2026-02-01T09:00:00.000Z",
};
const ASKS = delegationLike({
  id: id("a"),
  state: "input_required",
  target: "deployer",
  task_preview: "deploy release 7 as soon as the tests are green, and tell the team when it is done",
  interrupt: QUESTION,
  deadline_at: "2026-02-07T08:55:00.000Z",
  created_at: ago(300),
  updated_at: ago(60),
});
const FAILED = delegationLike({
  id: id("b"),
  state: "failed",
  target: "builder",
  task_preview: "build the documentation",
  error: {
    category: "UPSTREAM",
    code: "command_failed",
    message: "exit status 2: no space left on device",
    retryable: false,
    recovery: "Read error.message, which the agent wrote.",
  },
  created_at: ago(7200),
  updated_at: ago(7000),
  finished_at: ago(7000),
  attempt: 3,
});
const DONE = {
  ...completedWith("The change is sound.\nOne typo in line 12."),
  id: id("c"),
  target: "reviewer",
  task_preview: "review this change",
  created_at: ago(86_400 * 3),
  finished_at: ago(86_400 * 3 - 95),
};
const AWAITS = { children: [id("x"), id("y"), id("z")], left: 2, expires_at: "2026-02-02T09:00:00.000Z" };
const WAITS = delegationLike({
  id: id("e"),
  state: "awaiting_children",
  target: "planner",
  task_preview: "plan the move",
  awaits: AWAITS,
  priority: 8,
  deadline_at: "2026-02-07T08:50:00.000Z",
  created_at: ago(600),
  updated_at: ago(500),
});
/** Of the two people that it needs, one has approved, with another argument. */
const VOTED = delegationLike({
  id: id("f"),
  state: "input_required",
  target: "scaler",
  task_preview: "scale it to the load",
  deadline_at: "2026-02-07T08:55:00.000Z",
  interrupt: {
    ...QUESTION,
    id: "int_3",
    requests: [
      {
        request_id: "r",
        message: { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "Scale it?" }] },
        action: { name: "scale", arguments: { replicas: 3 } },
        edit: true,
      },
    ],
    votes: {
      needed: 2,
      given: [{ by: "approver:ann", via: "console", at: ago(30) }],
      answers: { r: { decision: "approve", data: { replicas: 5 } } },
    },
  },
  created_at: ago(300),
  updated_at: ago(30),
});
const LIST = [ASKS, VOTED, delegationLike({ id: id("d"), created_at: ago(5) }), WAITS, FAILED, DONE];
const AGENTS = [
  AGENT,
  {
    ...AGENT,
    name: "deployer",
    description: "Deploys releases, after it has asked",
    presence: { state: "online", last_seen_at: ago(2), pollers: 2 },
    counts: { waiting: 12, delayed: 1, working: 2, interrupted: 1, awaiting: 4 },
  },
];
const VOTES = {
  ...{ needed: 2, by: ["approver:*", "operator"], not_by_delegator: true },
  ...{ remind_seconds: 600, escalate_seconds: 3600, escalate_to: ["operator"] },
};
const DURATIONS = { median_seconds: 2, p95_seconds: 75 };
const COUNTS = { sent: 4, leased: 4, completed: 2, failed: 1, rejected: 0, canceled: 0 };
const TIMES = { time_to_lease: DURATIONS, time_to_answer: { ...DURATIONS, p95_seconds: 754 } };
const STATS = {
  period: "hour",
  bucket_seconds: 60,
  target: null,
  delegator: null,
  buckets: [{ at: ago(60), ...COUNTS, ...TIMES, waiting: 12, working: 2, oldest_seconds: 63 }],
  totals: { ...COUNTS, ...TIMES, failures: [{ code: "command_failed", count: 1 }] },
};

const STORY = [
  eventLike(1, "DELEGATION_SENT", {
    at: ago(300),
    state: "submitted",
    status: "queued",
    task_preview: "review this change",
  }),
  eventLike(2, "DELEGATION_STATUS", { at: ago(299), status: "leased", attempt: 1, worker_id: "host-7" }),
  eventLike(3, "DELEGATION_STATUS", {
    at: ago(200),
    status: "progress",
    progress: {
      message: "reading the third of eleven files, which has most of the change",
      done: 3,
      total: 11,
    },
  }),
  eventLike(4, "DELEGATION_STATUS", {
    at: ago(180),
    state: "awaiting_children",
    status: "awaiting",
    awaits: { ...AWAITS, count: AWAITS.children.length },
  }),
  eventLike(5, "DELEGATION_STATUS", { at: ago(120), state: "submitted", status: "resumed" }),
  eventLike(6, "DELEGATION_STATUS", { at: ago(119), status: "leased", attempt: 1, worker_id: "host-8" }),
  eventLike(7, "DELEGATION_STATUS", {
    at: ago(100),
    state: "input_required",
    status: "interrupted",
    interrupt: QUESTION,
  }),
  eventLike(8, "DELEGATION_STATUS", {
    at: ago(40),
    state: "submitted",
    status: "answered",
    by: "approver:ann",
    via: "console",
    decision: "approve",
    changes: { r: { changes: [{ path: ["replicas"], from: 3, to: 5 }], total: 1 } },
  }),
  eventLike(9, "DELEGATION_COMPLETE", {
    at: ago(5),
    duration_ms: 295_000,
    response_preview: "The change is sound.",
  }),
];
/** How it went on with one whose question nobody answered. */
const UNANSWERED = [
  eventLike(1, "DELEGATION_SENT", {
    at: ago(7200),
    state: "submitted",
    status: "queued",
    task_preview: "build the documentation",
  }),
  eventLike(2, "DELEGATION_FAILED", {
    at: ago(7000),
    state: "failed",
    error: {
      ...{ category: "TIMEOUT", code: "interrupt_expired", retryable: false, recovery: "Delegate it again." },
      message:
        "Nobody answered the question within 3 min. Notified: approver:ann by ntfy, email; approver:bob by slack.",
    },
    attempt: 1,
  }),
];

const SETTLED = {
  ...{ target: "deployer", delegator: "caller:alice", context_id: "ctx_1", task_preview: "deploy release 7" },
  ...{ kind: "input", outcome: "answered", asked_at: ago(60), settled_at: ago(40), by: null, via: null },
};
const ANSWERS = [
  {
    ...{ ...SETTLED, delegation_id: id("a"), interrupt_id: "int_1", by: "approver:ann", via: "console" },
    requests: [
      {
        ...{ request_id: "r", question_preview: "Scale it?", action: "scale", decision: "approve" },
        changes: { changes: [{ path: ["replicas"], from: 3, to: 5 }], total: 2 },
      },
    ],
  },
  {
    ...{ ...SETTLED, delegation_id: id("f"), interrupt_id: "int_3", by: "approver:bob", via: "rest" },
    votes: [
      { by: "approver:ann", via: "console", at: ago(50) },
      { by: "approver:bob", via: "rest", at: ago(40) },
    ],
    requests: [{ request_id: "r", question_preview: "Scale it?", action: "scale", decision: "approve" }],
  },
  {
    ...{ ...SETTLED, delegation_id: id("e"), interrupt_id: "int_4", outcome: "expired", needed: 2 },
    votes: [{ by: "approver:ann", via: "console", at: ago(50) }],
    told: [{ person: "approver:bob", channel: "ntfy", at: ago(55) }],
    requests: [{ request_id: "r", question_preview: "Scale it?", action: "scale" }],
  },
  {
    ...{ ...SETTLED, delegation_id: id("b"), interrupt_id: "int_2", outcome: "expired", target: "builder" },
    requests: [{ request_id: "r", question_preview: "Which of the two branches shall I build?" }],
  },
];

/** Durations differ, and the list of commands grows. */
const withoutChance = (text: string): string =>
  text
    .replace(/^Commands:\n(?: .*\n)+/m, "Commands: …\n")
    .replace(/(after|in) \d[\d.]* m?s$/gm, "$1 1 s")
    .replace(/responds in \d+ ms/, "responds in 1 ms");

/** Runs a command on a terminal of 80 columns; returns what it shows. */
async function screen(...argv: string[]): Promise<string> {
  const { url } = await stubBroker(({ method, path, query, headers }, answer) => {
    const last = path.split("/").at(-1);
    if (path === "/v1/delegations" && method === "POST")
      answer.json(delegationLike({ presence: { state: "offline", last_seen_at: null, pollers: 0 } }), 202);
    else if (path === "/v1/delegations") {
      const states = query.get("state")?.split(",");
      const delegations = LIST.filter(
        (one: Record<string, unknown>) => states?.includes(String(one.state)) ?? true,
      );
      answer.json({ delegations, next_cursor: null, scanned_to: null });
    } else if (path === "/v1/answers") {
      const outcome = query.get("outcome");
      const answers = ANSWERS.filter((one) => outcome === null || one.outcome === outcome);
      answer.json({ answers, next_cursor: null });
    } else if (path === "/v1/results") answer.json({ results: [DONE, FAILED, ASKS], cursor: "1754-0" });
    else if (path === "/healthz") answer.json({ status: "ok" });
    else if (path === "/v1/stats") answer.json(STATS);
    else if (path === "/v1/status")
      answer.json({
        version: "1.2.3",
        broker_id: "brk_1",
        url: "https://errand.example.org",
        notifications: { links: true, mail: false },
        now: NOW,
        started_at: ago(7200),
        principal: "operator",
        redis: {
          source: "embedded",
          product: "redis",
          version: "8.2.1",
          maxmemory_policy: "noeviction",
          maxmemory_bytes: 1_073_741_824,
          used_memory_bytes: 12_582_912,
          appendonly: true,
          appendfsync: "always",
          latency_ms: 0.4,
        },
      });
    else if (path === "/v1/tokens" && method === "GET") answer.json({ tokens: [] });
    else if (path === "/v1/tokens")
      answer.json(
        {
          id: "tok_1",
          principal: "caller:alice",
          token: `errand_${"x".repeat(43)}`,
          created_at: NOW,
          expires_at: "2026-05-01T09:00:00.000Z",
        },
        201,
      );
    else if (path === "/v1/agents") answer.json({ agents: AGENTS, next_cursor: null });
    else if (last === "workers") answer.json({ workers: [], truncated: false });
    else if (last === "events" && headers.accept?.includes("event-stream")) answer.events(STORY.map(frame));
    else if (last === "events")
      answer.json({
        events: path.includes(id("c")) ? STORY : path.includes(id("b")) ? UNANSWERED : [],
        cursor: "1-0",
      });
    else if (last === "leases") answer.json({ leases: [leaseLike()] });
    else if (last === "heartbeat") answer.json({ expires_at: NOW, messages: [], state: "working" });
    else if (last === "reply") answer.json({ outcome: "matched", delegation: DONE });
    else if (path === "/v1/agents/scaler") answer.json({ ...AGENT, name: "scaler", votes: VOTES });
    else if (path.startsWith("/v1/agents/")) answer.json(AGENT);
    else answer.json([...LIST].find((one) => one.id === last) ?? DONE);
  });
  const shown = Object.assign(new PassThrough(), { columns: 80 });
  const code = await runCli(argv, {
    ...host(),
    env: { url, token: "t", dataDir: "/nonexistent/data" },
    childEnv: { PATH: process.env.PATH, NO_COLOR: "1" },
    stdout: shown,
    stderr: shown,
    isTty: { stdin: false, stdout: true, stderr: true },
  });
  const text = String(shown.read() ?? "")
    .replaceAll(url, "http://127.0.0.1:4180")
    .replaceAll(process.versions.node, "20.19.0");
  return `$ errand ${argv.join(" ")}\n${withoutChance(text)}(exit ${code})\n`;
}

beforeEach(() => {
  vi.stubEnv("TZ", "UTC");
  vi.useFakeTimers({ toFake: ["Date"], now: new Date(NOW) });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

test.each([
  ["list", ["list"]],
  ["status", ["status"]],
  ["inbox", ["inbox", "--since", "7d"]],
  ["top", ["top", "--once"]],
  ["logs", ["logs", id("c")]],
  ["logs-failed", ["logs", id("b")]],
  ["watch", ["watch", id("c"), "--after", "0"]],
  ["get-asks", ["get", id("a")]],
  ["get-votes", ["get", id("f")]],
  ["approve-votes", ["approve", id("f")]],
  ["agent-votes", ["agent", "get", "scaler"]],
  ["get-failed", ["get", id("b")]],
  ["get-waits", ["get", id("e")]],
  ["results", ["results"]],
  ["answers", ["answers"]],
  ["answers-expired", ["answers", "--outcome", "expired"]],
  ["agents", ["agent", "list"]],
  ["stats", ["stats"]],
  ["help", ["--help"]],
  ["delegate-wait", ["delegate", "scout", "review this change", "--wait"]],
  ["work-log", ["work", "--agent", "scout", "--worker-id", "host-7", "--once", "--", "cat"]],
  ["doctor", ["doctor"]],
  ["invite", ["invite", "alice", "--expires", "90d"]],
] as const)("%s", async (name, argv) => {
  const text = await screen(...argv);
  const lines = text.split("\n").slice(1);
  // What is pasted or named stays whole.
  expect(lines.filter((line) => [...line].length > 80 && !/'errand |^export /.test(line))).toEqual([]);
  await expect(text).toMatchFileSnapshot(`${name}.txt`);
});
