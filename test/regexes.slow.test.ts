/** Every regular expression of the sources takes linear time for any text. */
import { check } from "recheck";
import { expect, test } from "vitest";
import { regexes } from "./support/regexes.ts";

const FOUND = regexes();

/** Built from names and numbers in the code. */
const MAY_MAKE = ["engine/access/tokens.ts"];

/**
 * These only read lines of our own Redis, and our own Lua. The checker takes seconds for the long literals of the one, and
 * for the look-behinds of the other it only searches at random, which ends differently from run to run.
 */
const OWN_TEXT = ["redis/embedded/log.ts", "lifecycle/script.ts"];

/** Without repetition, or anchored with one repetition: it cannot backtrack more than once over the text. */
function isPlain(source: string, flags: string): boolean {
  const outside = source.replaceAll(/\\.|\[(?:\\.|[^\\\]])*\]/g, "x").replaceAll(/\(\?[:=!]/g, "(");
  const repeats = outside.match(/[*+?]|\{\d+(?:,\d*)?\}/g)?.length ?? 0;
  return (
    repeats === 0 || (repeats === 1 && !flags.includes("m") && /^\^(?:[^|]|\|(?=[^()]*\)))*$/.test(outside))
  );
}

/** A proof where there can be one; else a search, whose own time limits would call a busy machine a slow expression. */
async function statusOf(source: string, flags: string): Promise<string> {
  const timeout = 30_000;
  const { status } = await check(source, flags, { timeout, checker: "automaton" });
  if (status !== "unknown") return status;
  const limits = { incubationTimeout: timeout, attackTimeout: timeout };
  return (await check(source, flags, { timeout, ...limits })).status;
}

test("each literal is linear", { timeout: 120_000 }, async () => {
  const { literals } = FOUND;
  expect(literals.length).toBeGreaterThan(50);
  const unique = new Map(literals.map((one) => [`/${one.source}/${one.flags}`, one]));
  const slow: string[] = [];
  for (const [text, { file, source, flags }] of unique) {
    if (OWN_TEXT.includes(file) || isPlain(source, flags)) continue;
    const status = await statusOf(source, flags);
    if (status !== "safe") slow.push(`${file}: ${text} is ${status}`);
  }
  expect(slow).toEqual([]);
});

test("none is built from user text", () => {
  expect([...new Set(FOUND.made)]).toEqual(MAY_MAKE);
});

test("the check itself detects a slow one", async () => {
  expect(isPlain("^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9_-]{4})*$", "")).toBe(false);
  expect(isPlain("\\/+$", "")).toBe(false);
  expect(isPlain("^a|b+$", "")).toBe(false);
  expect(isPlain("^(?:a|b)[cd]{1,9}$", "")).toBe(true);
  expect((await check("\\/+$", "")).status).toBe("vulnerable");
});
