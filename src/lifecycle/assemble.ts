/**
 * Assembles the one script: a head that is generated from the tables, and the parts in lua/ (read main.lua
 * first). The parts define and call each other's functions as if they were global.
 */
import { readdirSync, readFileSync } from "node:fs";
import { TICKET_LUA } from "../queue/ticket-script.ts";
import { toLua } from "../redis/script.ts";
import { agentRequestSchema } from "../schema/agent.ts";
import { LIVE_STATES, type State, TERMINAL_STATES } from "../schema/delegation.ts";
import { LEASE_LOST_REASONS } from "../schema/lease.ts";
import { EVENT_LINES, FIELD_NAMES, FIELDS, READ_NAMES } from "./fields.ts";
import { agentNumbers, failure, NUMBERS } from "./numbers.ts";
import { MOVE_NAMES, MOVES, type Move } from "./states.ts";
import { type Condition, TIMERS, type Timer } from "./timers.ts";

const PARTS = new URL("./lua/", import.meta.url);
const RARE_PARTS = new URL("rare/", PARTS);
/** Without comments, so that their words do not count as uses. */
const partOf = (file: string, folder = PARTS): string =>
  readFileSync(new URL(file, folder), "utf8")
    .split("\n")
    .filter((line) => !line.trimStart().startsWith("--"))
    .join("\n");
const filesIn = (folder: URL): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".lua") && file !== "state.lua")
    .sort();

/** Generates a function that maps strings. It compares them one by one: a table would be built at every call. */
function mapFunction(name: string, entries: readonly (readonly [string, unknown])[]): string {
  const lines = entries.map(([key, value]) => `  if key == ${toLua(key)} then return ${toLua(value)} end`);
  return [`function ${name}(key)`, ...lines, "  return nil", "end"].join("\n");
}

/** A lease's end is stored as a letter. */
const LETTERS = LEASE_LOST_REASONS.map((reason, index) => [reason, "ABCDEFGH".charAt(index)] as const);

/** The guards that rare/guards.lua checks. */
const RARE_GUARDS: ReadonlySet<string> = new Set(
  [...partOf("guards.lua", RARE_PARTS).matchAll(/\bneeds_(\w+)/g)].map(([, guard = ""]) => guard),
);

/** A row of the table as the script uses it: `needs_<guard>` for each guard, `to` as one word. */
function row({ by: _by, memory: _memory, removes_old_ticket: _removes, doc: _doc, ...effects }: Move) {
  const { from, to, requires, lease_lost_reason, ...rest } = effects;
  const [first, second] = to;
  return {
    ...rest,
    from: Object.fromEntries(from.map((state) => [state, true])),
    to: second === undefined ? first : "asked",
    lease_lost_reason: LETTERS.find(([reason]) => reason === lease_lost_reason)?.[1],
    ...Object.fromEntries(requires.map((guard) => [`needs_${guard}`, true])),
    ...(requires.some((guard) => RARE_GUARDS.has(guard)) && { needs_rare: true }),
  };
}

const quotedNames = (names: readonly string[]) => names.map((name) => `'${name}'`).join(", ");
const isNumber = (name: keyof typeof FIELDS) => /number|instant/.test(FIELDS[name].type);

function readers(): string {
  const names = FIELD_NAMES.filter((name) => "script" in FIELDS[name]);
  const members = names.map((name, index) => {
    const value = `v[${index + 1}]`;
    return `${name} = ${isNumber(name) ? `tonumber(${value} or '')` : `${value} ~= '' and ${value} or nil`}`;
  });
  return `function read_record(key)
  local v = redis.call('HMGET', key, ${quotedNames(names)})
  local record = { ${members.join(", ")} }
  record.ends = record.ends or ''
  return record
end
function shown(key)
  local v = redis.call('HMGET', key, ${quotedNames(READ_NAMES)})
  for i = 1, ${READ_NAMES.length} do v[i] = v[i] or '' end
  return table.concat(v, '\\n')
end
function event_text(more, refs)
  return table.concat({ ${Object.values(EVENT_LINES)
    .map(({ lua }) => lua)
    .join(", ")} }, '\\n')
end`;
}

const CONDITIONS: Record<Condition, string> = {
  pending: "not record.unpublished and has_pending()",
  unpublished: "record.unpublished",
  never_leased: "record.fence == 0",
  attempts_left: "record.attempt < record.max_attempts",
  attempts_spent: "record.attempt >= record.max_attempts",
};

/** The test for these states with the fewest comparisons; undefined: it is always true. */
function inStates(states: readonly State[]): string | undefined {
  const live = states.filter((state) => LIVE_STATES.some((one) => one === state)).length;
  if (states.length === LIVE_STATES.length + TERMINAL_STATES.length) return undefined;
  if (live === 0) return "ended";
  if (live === LIVE_STATES.length) return "not ended";
  const tests = states.map((state) => `state == '${state}'`);
  return tests.length === 1 ? tests[0] : `(${tests.join(" or ")})`;
}

function timers(): string {
  const lines = TIMERS.map(({ at, in: states, if: condition, does, code, plus }: Timer) => {
    const tests = [inStates(states), condition && CONDITIONS[condition]].filter((test) => test !== undefined);
    const field = at === "now" ? "now" : `record.${at}`;
    const pause = plus && { retention: " + cmd.retention_ms", pause: ` + ${NUMBERS.follow_ms}` }[plus];
    const call = `timer(${field}${pause ?? ""}, ${toLua(does)}, ${toLua(code)})`;
    return `  if ${tests.join(" and ")} then ${call} end`;
  });
  return `function look_at_timers()
  soonest, due, due_code = nil, nil, nil
  local state, ended = record.state, is_terminal(record.state)
${lines.join("\n")}
end`;
}

function tables(): string {
  return [
    readers(),
    timers(),
    mapFunction(
      "row",
      MOVE_NAMES.map((name) => [name, row(MOVES[name])]),
    ),
    mapFunction(
      "is_terminal",
      TERMINAL_STATES.map((state) => [state, true]),
    ),
    mapFunction("agent_default", Object.entries(agentNumbers(agentRequestSchema.parse({})))),
  ].join("\n");
}

function rareTables(): string {
  const codes = ["attempts_exhausted", "deadline_exceeded", "interrupt_expired", "not_picked_up"] as const;
  return [
    mapFunction(
      "lost_reason",
      LETTERS.map(([reason, letter]) => [letter, reason]),
    ),
    mapFunction(
      "failure_json",
      codes.map((code) => [code, JSON.stringify(failure(code))]),
    ),
  ].join("\n");
}

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

/** Definitions and calls of these functions go through the table `rare`. */
function throughTable(text: string, names: ReadonlySet<string>): string {
  return text.replaceAll(/(?<![\w.])\w+(?=\()|(?<=\bpcall\()\w+/g, (word) =>
    names.has(word) ? `rare.${word}` : word,
  );
}

/**
 * Puts the body of a function in place of its call, if it has no parameters, returns nothing and is called in one place
 * (`rare` counts as well). Not in `transition`, which would capture too many locals.
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

/** A Lua function captures at most 60 locals; the state and the ticket functions are 40 of them. */
const OUTSIDE = 18;

/** The locals that a text declares at its top level, in order. */
const localsIn = (text: string): string[] =>
  [...text.matchAll(/^local (?:function )?(\w+(?:, \w+)*)/gm)].flatMap(([, names = ""]) => names.split(", "));

/**
 * Wraps the tables and the parts in one function, `define`. Redis runs the whole text at every call, so every function
 * costs at each:
 * - Few moves need the parts in rare/: they are defined when one of their functions is called for the first time.
 * - A local that `define` captures is cheap to capture again; for a local of its own, Lua walks a list from the last
 *   declared one. So the state and the most used functions are declared outside, and the others in the order of their use.
 * - That list is sorted, so a new local is captured fast if all others were declared before it: `define` begins with a
 *   branch that never runs, and names what it captures in the order of declaration.
 */
function script(): string {
  const rare = [rareTables(), ...filesIn(RARE_PARTS).map((file) => partOf(file, RARE_PARTS))].join("\n");
  const rareNames = new Set(definedIn(rare));
  const all = [tables(), ...filesIn(PARTS).map((file) => partOf(file))].join("\n");
  const text = inlined(throughTable(all, rareNames), rare);
  const uses = countWords(text);
  const usesOf = (name: string) => uses.get(name) ?? 0;
  const names = definedIn(text)
    .filter((name) => name !== "transition")
    .sort((a, b) => usesOf(a) - usesOf(b));
  const outside = ["transition", "rare", ...names.splice(-OUTSIDE)];
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

/**
 * The whole script. For a taker (a poll that takes a ticket in the same step), the second key is its agent's, and the
 * last argument its command.
 */
export const assemble = (flags = ""): string => `#!lua${flags}
${SCRIPT}
return (transition(KEYS[1], ARGV, KEYS[2] and { KEYS[2], ARGV[#ARGV] } or nil))`;
