/** The lines of the log for people. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createLog, type Log } from "../../src/telemetry/log.ts";
import { textLine } from "../../src/telemetry/log-text.ts";

function logged(write: (log: Log) => void, color = false): string {
  let text = "";
  write(
    createLog("trace", (line) => {
      text += textLine(line, color);
    }),
  );
  return text;
}

const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d /;

test("a line has the local time, the level, the message and the fields", () => {
  const line = logged((log) =>
    log.warn({ redis: "127.0.0.1:6379", err: 'no "answer"', away_ms: 12, code: null }, "Redis is away"),
  );
  expect(line).toMatch(TIME);
  expect(line.replace(TIME, "")).toBe(
    'warn  Redis is away redis=127.0.0.1:6379 err="no \\"answer\\"" away_ms=12 code=null\n',
  );
  const at = new Date(2026, 1, 3, 4, 5, 6);
  expect(textLine(JSON.stringify({ level: "info", time: at.toISOString(), msg: "ready" }), false)).toBe(
    "2026-02-03 04:05:06 info  ready\n",
  );
});

test("a stack follows, indented", () => {
  const line = logged((log) =>
    log.error({ err: "Error: x\n    at f (a.js:1)", request_id: "r1" }, "internal error"),
  );
  expect(line.replace(TIME, "")).toBe(
    "error internal error request_id=r1\n    err:\n    Error: x\n        at f (a.js:1)\n",
  );
});

test("color marks the time, the level and the names of the fields, and only there", () => {
  const write = (log: Log) => log.info({ port: 4180 }, "ready");
  expect(
    logged(write, true)
      .replaceAll("\u001b", "^")
      .replace(/[\d-]{10} [\d:]{8}/, "TIME"),
  ).toBe("^[2mTIME^[22m ^[32minfo ^[39m ready ^[2mport=^[22m4180\n");
  expect(logged(write)).not.toContain("\u001b");
});

test("no text reaches the terminal as a command, and no token reaches it at all", () => {
  const token = "errand_operator_0123456789abcdefghjkmnpqrstvwxyz";
  const line = logged((log) =>
    log.info({ "k\u009b2J": "\u001b[2J\u202e", err: token, deep: ["\u0007"] }, "a\rb"),
  );
  expect(line.replace(TIME, "")).toBe(
    'info  a\\u{d}b k\\u{9b}2J="\\\\u001b[2J\\u{202e}" err="[redacted]" deep=["\\\\u0007"]\n'.replaceAll(
      "\\\\u0",
      "\\u0",
    ),
  );
  const unsafe = /[^\P{C}\n]|[\u2028\u2029]/u;
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      fc.dictionary(fc.string(), fc.string({ unit: "binary" })),
      (msg, fields) => {
        expect(logged((log) => log.info(fields, msg)).replaceAll(/[\p{Co}\p{Cn}\p{Cs}]/gu, "")).not.toMatch(
          unsafe,
        );
      },
    ),
    { numRuns: 20 },
  );
});

test("what is no entry of the log is one line, too", () => {
  expect(textLine("plain \u001b[1m\n", true)).toBe("plain \\u{1b}[1m\n");
});
