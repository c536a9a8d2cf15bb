/**
 * The one script, assembled from the functions that tables.ts generates and the parts in lua/ (read main.lua first). The
 * parts define and call each other's functions as if they were global. There are two versions: at full memory, Redis
 * refuses the one for moves that grow a delegation.
 */
import { readdirSync, readFileSync } from "node:fs";
import { TICKET_LUA } from "../queue/ticket-script.ts";
import { Script } from "../redis/script.ts";
import { NUMBERS } from "./numbers.ts";
import { lazyTables, tables } from "./tables.ts";

const PARTS = new URL("./lua/", import.meta.url);
const LAZY_PARTS = new URL("lazy/", PARTS);
/** The text of a part, without comments, which Redis would read at each load. */
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

/** Puts `lazy.` before each use of these functions: a definition, a call, or an argument of `pcall`. */
function throughTable(text: string, names: ReadonlySet<string>): string {
  // The words are at the odd places.
  const pieces = text.split(/(\w+)/);
  const isUsed = (at: number): boolean => {
    const [before = "", after = ""] = [pieces[at - 1], pieces[at + 1]];
    return (after.startsWith("(") && !before.endsWith(".")) || (before === "(" && pieces[at - 2] === "pcall");
  };
  return pieces
    .map((piece, at) => (at % 2 === 1 && names.has(piece) && isUsed(at) ? `lazy.${piece}` : piece))
    .join("");
}

/**
 * Wraps the tables and the parts in one function, `define`: Redis runs the whole text at every call, and a function costs
 * less to define there than at the top. Few moves need the parts in lazy/, so these are defined when one of their functions
 * is first called.
 */
function assembled(): string {
  const lazy = [lazyTables(), ...filesIn(LAZY_PARTS).map((file) => partOf(file, LAZY_PARTS))].join("\n");
  const lazyNames = new Set(definedIn(lazy));
  const lazyGuards = new Set(
    [...partOf("guards.lua", LAZY_PARTS).matchAll(/\bneeds_(\w+)/g)].map(([, guard = ""]) => guard),
  );
  const often = [tables(lazyGuards), ...filesIn(PARTS).map((file) => partOf(file))].join("\n");
  const text = throughTable(often, lazyNames);
  const names = definedIn(text).filter((name) => name !== "transition");
  return withNumbers(`${TICKET_LUA}
local time_ms = redis_ms()
${partOf("state.lua")}
local lazy, transition
local function define()
local ${names.join(", ")}
${text}
lazy = setmetatable({}, { __index = function(_, name)
${throughTable(lazy, lazyNames)}
return rawget(lazy, name)
end })
end
define()`);
}

const ASSEMBLED = assembled();

/** lua/main.lua describes its arguments. */
const withFlags = (flags: string): Script =>
  new Script(`#!lua${flags}
${ASSEMBLED}
${partOf("run.lua")}`);

/** For the moves that the state table calls `new` or `grows`. */
export const growingScript = withFlags("");
export const inFlightScript = withFlags(" flags=allow-oom");
