/** The pages of the agent protocol are right: their transcripts are run, their tables are compared with the code. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ERRORS, isErrorCode } from "../../src/schema/errors.ts";
import { LEASE_LOST_REASONS, leaseRequestSchema } from "../../src/schema/lease.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { compare } from "../support/transcript.ts";
import { until } from "../support/until.ts";
import { undocumentedMembers } from "./events-table.ts";
import { runTranscripts } from "./run-transcripts.ts";

const PAGES = ["docs/agent-protocol.md", "docs/agent-protocol-details.md"];

let page = "";
beforeAll(async () => {
  const texts = PAGES.map((one) => readFile(new URL(`../../${one}`, import.meta.url), "utf8"));
  page = (await Promise.all(texts)).join("\n");
});

test("the transcripts print what the pages show", async () => {
  const { count, url } = await runTranscripts(...PAGES);
  expect(count).toBeGreaterThan(30);
  expect(await undocumentedMembers(url)).toEqual([]);
});

test("the agent at the beginning works, and reports what its work raises", async () => {
  const [, program = ""] = /```python\n(import [^`]*)```/.exec(page) ?? [];
  expect(program.split("\n").length).toBeLessThan(35);
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { limits: { max_attempts: 1 } });
  const { token } = await as(url, "agent:scout");
  const failing = program.replace(
    "return str(len",
    'if "!" in text: raise ValueError("no shouting")\n    return str(len',
  );
  const env = { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: token };
  const child = spawn("python3", ["-c", failing], { env, stdio: ["ignore", "ignore", "inherit"] });
  onTestFinished(() => void child.kill());
  const ended = async (task: string) => {
    const { id } = (await api.delegate("scout", { task })).body;
    return until(async () => {
      const { body } = await api.get(id);
      return body.finished_at !== null && body;
    });
  };
  expect(await ended("count these words")).toMatchObject({
    state: "completed",
    reply: { parts: [{ text: "3" }] },
  });
  expect(await ended("count!")).toMatchObject({ state: "failed", error: { message: "no shouting" } });
}, 120_000);

/** The rows of the table after the line with this text, with cells without backquotes. */
function tableBelow(text: string): string[][] {
  const lines = page.split("\n");
  const from = lines.findIndex((line) => line.includes(text));
  expect(from, `a line with '${text}'`).toBeGreaterThanOrEqual(0);
  const start = lines.findIndex((line, index) => index > from && line.startsWith("| ---"));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith("|"));
  return lines.slice(start + 1, end).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

describe("the tables agree with the code", () => {
  test("on every reason of a lost lease", () => {
    const reasons = tableBelow("`details.reason` of `lease_lost`").map(([reason]) => reason);
    expect(reasons.sort()).toEqual([...LEASE_LOST_REASONS].sort());
  });

  test("on error codes and their HTTP status", () => {
    for (const [status, codes = ""] of tableBelow("## Errors, and what to do")) {
      for (const code of codes.split(", ")) {
        expect(isErrorCode(code) && String(ERRORS[code].status), code).toBe(status);
      }
    }
  });

  test.each([
    ["calls that wait", LIMITS.polls],
    ["progress and artifact chunks", LIMITS.progress_per_second],
    ["events of one delegation", LIMITS.delegation_events],
    ["nesting of JSON", LIMITS.json_depth],
    ["leases in one answer", LIMITS.leases],
    ["hold", LIMITS.wait_seconds],
    ["artifacts of a reply", LIMITS.artifacts],
  ])("the limit of %s", (what, { value }) => {
    const row = tableBelow("## Limits").find(([name]) => name?.startsWith(what));
    expect(Number.parseInt(row?.[1] ?? "", 10)).toBe(value);
  });

  test("on the fields of a lease request, with their defaults and ranges", () => {
    const rows = tableBelow("asks for work and waits for it");
    expect(rows.map(([field]) => field)).toEqual(Object.keys(leaseRequestSchema.shape));
    const defaults: Record<string, unknown> = leaseRequestSchema.parse({});
    for (const [field = "", byDefault = "", range = ""] of rows) {
      if (defaults[field] !== undefined) expect(byDefault, field).toBe(String(defaults[field]));
      const [low, high] = range.split(" to ").map(Number);
      if (low === undefined || high === undefined || Number.isNaN(high)) continue;
      for (const [value, legal] of [
        [low, true],
        [high, true],
        [low - 1, false],
        [high + 1, false],
      ] as const) {
        expect(leaseRequestSchema.safeParse({ [field]: value }).success, `${field}: ${value}`).toBe(legal);
      }
    }
  });
});

test.each([
  ["another value", '{"a": 1}', '{"a": 2}', [".a: expected 1, got 2"]],
  ["an additional member", '{"a": 1}', '{"a": 1, "b": 2}', [".b: not in the document"]],
  ["a missing member", '{"a": 1, "…": "…"}', '{"b": 2}', [".a: expected 1, got undefined"]],
  ["another beginning", '{"a": "dlg_…"}', '{"a": "lse_1"}', ['.a: expected "dlg_…", got "lse_1"']],
  ["another length", "[1]", "[1, 2]", ["the answer: expected [1], got [1,2]"]],
  ["another status", "{}\nHTTP 200", "{}\nHTTP 201", ["expected:\n{}\nHTTP 200\ngot:\n{}\nHTTP 201"]],
  [
    "an event",
    'id: 1…\nevent: A\ndata: {"a": 1}\n\nHTTP 200',
    'id: 17-0\nevent: A\ndata: {"a":2}\n\n\nHTTP 200',
    ["[0].data.a: expected 1, got 2"],
  ],
  ["words", "", "curl: (7) failed", ["expected:\n\ngot:\ncurl: (7) failed"]],
  [
    "nothing",
    '{"a": "dlg_…", "b": "…", "…": "…"}\nHTTP 200',
    '{"c": [], "b": 3, "a": "dlg_1"}\n\nHTTP 200',
    [],
  ],
])("a transcript that differs by %s", (_what, expected, printed, wrong) => {
  expect(compare(expected, printed, new Map())).toEqual(wrong);
});
