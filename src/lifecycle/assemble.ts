/**
 * Assembles the one script: the functions that tables.ts generates, and the parts in lua/ (read main.lua first). The
 * parts define and call each other's functions as if they were global.
 */
import { readdirSync, readFileSync } from "node:fs";
import { TICKET_LUA } from "../queue/ticket-script.ts";
import { NUMBERS } from "./numbers.ts";
import { rareTables, tables } from "./tables.ts";

const PARTS = new URL("./lua/", import.meta.url);
const RARE_PARTS = new URL("rare/", PARTS);
/** The text of a part, without comments, so that {@link countWords} counts only code. */
const partOf = (file: string, folder = PARTS): string =>
  readFileSync(new URL(file, folder), "utf8")
    .split("\n")
    .filter((line) => !line.trimStart().startsWith("--"))
    .join("\n");
const filesIn = (folder: URL): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".lua") && file !== "state.lua" && file !== "run.lua")
    .sort();

function withNumbers(text: string): string {
  const numbers = new Map<string, number>(Object.entries(NUMBERS));
  return text.replaceAll(/\bLIMITS\.(\w+)/g, (_, name: string) => {
    const value = numbers.get(name);
    if (value === undefined) throw new TypeError(`a part names an unknown limit: ${name}`);
    return String(value);
  });
}

/** The names of the functions that a text defines. */
const definedIn = (text: string): string[] =>
  [...text.matchAll(/^function (\w+)/gm)].map(([, name = ""]) => name);

/** Puts `rare.` before each use of these functions: a definition, a call, or an argument of `pcall`. */
function throughTable(text: string, names: ReadonlySet<string>): string {
  // The words are at the odd places.
  const pieces = text.split(/(\w+)/);
  const isUsed = (at: number): boolean => {
    const [before = "", after = ""] = [pieces[at - 1], pieces[at + 1]];
    return (after.startsWith("(") && !before.endsWith(".")) || (before === "(" && pieces[at - 2] === "pcall");
  };
  return pieces
    .map((piece, at) => (at % 2 === 1 && names.has(piece) && isUsed(at) ? `rare.${piece}` : piece))
    .join("");
}

/**
 * Inlines each function that has no parameters, returns nothing and is called in only one place of `text` and `rare`.
 * Calls in `transition` stay: with their bodies it would capture too many locals.
 */
function inlined(text: string, rare: string): string {
  const uses = countWords(`${text}\n${rare}`);
  const functions = text.split("\nend\n").map((block) => block.slice(block.lastIndexOf("\nfunction ") + 1));
  const transition = functions.find((one) => one.startsWith("function transition("));
  const bodies = new Map<string, string>();
  let rest = text;
  for (const whole of functions) {
    const [, name] = /^function (\w+)\(\)\n/.exec(whole) ?? [];
    if (name === undefined || uses.get(name) !== 2 || transition?.includes(`${name}()`)) continue;
    if (whole.split(/\W+/).includes("return")) continue;
    bodies.set(name, whole.slice(whole.indexOf("\n")));
    rest = rest.replace(`${whole}\nend\n`, () => "");
  }
  const withBodies = (part: string): string =>
    part.replaceAll(/(?<![\w.])(\w+)\(\)/g, (call, name: string) => {
      const body = bodies.get(name);
      return body === undefined ? call : `do${withBodies(body)}\nend`;
    });
  return withBodies(rest);
}

function countWords(text: string): Map<string, number> {
  const uses = new Map<string, number>();
  for (const [word] of text.matchAll(/\w+/g)) uses.set(word, (uses.get(word) ?? 0) + 1);
  return uses;
}

/**
 * How many functions are declared outside `define`: the most used ones. A Lua function captures at most 60 locals, and
 * `define` captures 40 others: the state and the ticket functions.
 */
const OUTER_FUNCTIONS = 18;

/** The locals that a text declares at its top level, in order. */
const localsIn = (text: string): string[] =>
  [...text.matchAll(/^local (?:function )?(\w+(?:, \w+)*)/gm)].flatMap(([, names = ""]) => names.split(", "));

/**
 * Wraps the tables and the parts in one function, `define`. Redis runs the whole text at every call, so each call
 * defines every function again, which must be cheap:
 * - Few moves need the parts in rare/. They are defined when one of their functions is first called.
 * - Each function captures the locals that it names. This is cheap for locals declared outside `define`. To capture a
 *   local of `define` itself, Lua walks a list that begins with the last declared one. So the state and the most used
 *   functions are declared outside, and the others are declared with the most used ones last.
 * - `define` itself captures the locals outside, through a list of the same kind. This is fast in the order of their
 *   declaration, so `define` begins with a branch that never runs and names them in that order.
 */
function script(): string {
  const rare = [rareTables(), ...filesIn(RARE_PARTS).map((file) => partOf(file, RARE_PARTS))].join("\n");
  const rareNames = new Set(definedIn(rare));
  const rareGuards = new Set(
    [...partOf("guards.lua", RARE_PARTS).matchAll(/\bneeds_(\w+)/g)].map(([, guard = ""]) => guard),
  );
  const all = [tables(rareGuards), ...filesIn(PARTS).map((file) => partOf(file))].join("\n");
  const text = inlined(throughTable(all, rareNames), rare);
  const uses = countWords(text);
  const usesOf = (name: string) => uses.get(name) ?? 0;
  const names = definedIn(text)
    .filter((name) => name !== "transition")
    .sort((a, b) => usesOf(a) - usesOf(b));
  const outside = ["transition", "rare", ...names.splice(-OUTER_FUNCTIONS)];
  const state = partOf("state.lua");
  const calls = new Set([...`${text}${rare}`.matchAll(/(?<!\w)\w+(?=\()/g)].map(([name]) => name));
  const captured = [
    ...localsIn(TICKET_LUA).filter((name) => calls.has(name)),
    ...["time_ms", ...localsIn(state), ...outside],
  ];
  return withNumbers(`${TICKET_LUA}
local time_ms = redis_ms()
${state}
local ${outside.join(", ")}
local function define()
if false then local _ = ${captured.join(", ")} end
local ${names.join(", ")}
${text}
rare = setmetatable({}, { __index = function(_, name)
${throughTable(rare, rareNames)}
return rawget(rare, name)
end })
end
define()`);
}

const SCRIPT = script();

/** The whole script; lua/main.lua describes its arguments. */
export const assemble = (flags = ""): string => `#!lua${flags}
${SCRIPT}
${partOf("run.lua")}`;
