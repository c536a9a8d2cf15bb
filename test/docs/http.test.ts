/** docs/http.md is right: its transcripts are run, its numbers are those of the code. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MOVES } from "../../src/lifecycle/states.ts";
import { isErrorCode } from "../../src/schema/errors.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { documentedEvents, eventKinds, undocumentedMembers } from "./events-table.ts";
import { runTranscripts } from "./run-transcripts.ts";

const page = readFileSync(new URL("../../docs/http.md", import.meta.url), "utf8");

test("the transcripts print what the page shows", async () => {
  const { count, url } = await runTranscripts("docs/http.md");
  expect(count).toBeGreaterThan(30);
  expect(await undocumentedMembers(url)).toEqual([]);
}, 120_000);

test("the table of events names every status, and the members that its schema has", () => {
  const documented = documentedEvents();
  const statuses = Object.values(MOVES).flatMap((move) => ("status" in move ? [move.status] : []));
  expect([...documented.keys()]).toEqual(expect.arrayContaining(statuses));
  const kinds = new Map(eventKinds());
  expect([...kinds.keys()].sort()).toEqual([...documented.keys()].sort());
  for (const [kind, members] of documented)
    expect([...members].sort(), kind).toEqual([...(kinds.get(kind) ?? [])].sort());
});

test.each([
  ["a wait", LIMITS.wait_seconds.value],
  ["calls that wait, and as many streams", LIMITS.polls.value],
  ["calls that wait, and as many streams", LIMITS.streams.value],
  ["items of a batch", LIMITS.batch.value],
  ["a request's body", LIMITS.body_bytes.value / 2 ** 20],
  ["message, history, artifacts", LIMITS.delegation_bytes.value / 2 ** 20],
])("the limit of %s", (what, value) => {
  const row = page.split("\n").find((line) => line.startsWith(`| ${what}`));
  expect(Number.parseInt(row?.split("|")[2] ?? "", 10)).toBe(value);
});

test("every error code that it names exists", () => {
  const [, errors = ""] = page.split("## Errors and retries");
  const named = [...errors.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code = ""]) => code);
  const others = ["not_executed", "max_waiting"];
  expect(named.filter((code) => !isErrorCode(code) && !others.includes(code))).toEqual([]);
});
