#!/usr/bin/env node
/**
 * Prints random comments and error texts of src, each with its place, so that a person can judge how they read.
 * Limit: the scanner knows no regular expressions; a quote or `//` inside one may hide a text or show a false one.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "./arguments.mjs";

const HELP = `node scripts/sample-texts.mjs [options]

  --seed N      choose the texts by this number; the same number chooses the same texts (default 1)
  --comments N  how many comments (default 50)
  --errors N    how many error texts (default 50)
  --match TEXT  only from files whose path contains TEXT
`;
const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Comments in the first group, strings in the second. */
const TYPESCRIPT =
  /(\/\*[\s\S]*?\*\/|(?:\/\/[^\n]*(?:\n[ \t]*(?=\/\/))?)+)|("(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/g;
const LUA = /((?:--[^\n]*(?:\n[ \t]*(?=--))?)+)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/g;
/** A call that makes an error, up to its closing parenthesis; strings and comments are blanked before. */
const ERROR_CALL = /\b(?:new \w*Error|\w*[eE]rror|refusal|fail|row)\(/g;
/** Files whose every sentence is an error text. */
const TABLES = ["cli/recovery.ts", "doors/mcp/recoveries.ts"];

const { values } = readArguments(HELP, {
  seed: { type: "string", default: "1" },
  comments: { type: "string", default: "50" },
  errors: { type: "string", default: "50" },
  match: { type: "string", default: "" },
});
main();

function main() {
  const found = { comments: [], errors: [] };
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(ts|lua)$/.test(file) && file.includes(values.match))
    .sort();
  for (const file of files) {
    const texts = textsOf(file);
    found.comments.push(...texts.comments);
    found.errors.push(...texts.errors);
  }
  const random = randomFrom(Number(values.seed));
  print("comments", found.comments, Number(values.comments), random);
  print("error texts", found.errors, Number(values.errors), random);
}

function textsOf(file) {
  const source = readFileSync(join(ROOT, "src", file), "utf8");
  const pattern = file.endsWith(".lua") ? LUA : TYPESCRIPT;
  const all = [...source.matchAll(pattern)].map(({ 0: text, 1: comment, index }) => ({
    where: `src/${file}:${source.slice(0, index).split("\n").length}`,
    text,
    index,
    isComment: comment !== undefined,
  }));
  const code = source.replaceAll(pattern, (text) => text.replaceAll(/[^\n]/g, "_"));
  const calls = [...code.matchAll(ERROR_CALL)].map(({ 0: head, index }) => [
    index,
    endOfCall(code, index + head.length),
  ]);
  const isError = ({ index }) =>
    TABLES.includes(file) ||
    /\b(?:recovery|detail):\s*$/.test(code.slice(Math.max(0, index - 30), index)) ||
    calls.some(([from, to]) => from < index && index < to);
  return {
    comments: all.filter(({ isComment, text }) => isComment && /[a-z] [a-z]/i.test(text)),
    errors: all.filter((one) => !one.isComment && /[a-z] [a-z]/i.test(one.text) && isError(one)),
  };
}

function endOfCall(code, from) {
  let depth = 1;
  let at = from;
  for (; at < code.length && depth > 0; at += 1) {
    if (code[at] === "(") depth += 1;
    if (code[at] === ")") depth -= 1;
  }
  return at;
}

/** Mulberry32. */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function print(title, texts, count, random) {
  const rest = [...texts];
  const chosen = [];
  while (chosen.length < count && rest.length > 0)
    chosen.push(...rest.splice(Math.floor(random() * rest.length), 1));
  process.stdout.write(`== ${chosen.length} of ${texts.length} ${title}\n\n`);
  for (const { where, text } of chosen)
    process.stdout.write(`${where}\n${text.replaceAll(/^\s+/gm, "  ")}\n\n`);
}
