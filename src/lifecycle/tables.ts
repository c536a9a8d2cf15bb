/**
 * The part of the script that is generated from the tables: readers of the record, the event's text, the rows of
 * states.ts, the timers, defaults and names. Each is a function, so that a call builds only what it needs.
 */
import { toLua } from "../redis/script.ts";
import { agentRequestSchema } from "../schema/agent.ts";
import { LIVE_STATES, type State, TERMINAL_STATES } from "../schema/delegation.ts";
import { LEASE_LOST_REASONS } from "../schema/lease.ts";
import { EVENT_LINES, FIELDS, type FieldName, GIVEN, isPacked, PACKED, READ_NAMES } from "./fields.ts";
import { agentNumbers, failure, NUMBERS } from "./numbers.ts";
import { MOVE_NAMES, MOVES, type Move } from "./states.ts";
import { type Condition, TIMERS, type Timer } from "./timers.ts";

/** Generates a function that maps strings. It compares them one by one: a table would be built at every call. */
function mapFunction(name: string, entries: readonly (readonly [string, unknown])[]): string {
  const lines = entries.map(([key, value]) => `  if key == ${toLua(key)} then return ${toLua(value)} end`);
  return [`function ${name}(key)`, ...lines, "  return nil", "end"].join("\n");
}

/** The record stores the reason why a lease ended as one letter. */
const REASON_LETTERS = LEASE_LOST_REASONS.map(
  (reason, index) => [reason, String.fromCharCode("A".charCodeAt(0) + index)] as const,
);

/** A row of the table for the script: `needs_<guard>` for each guard; `to` is a state, or `asked` if there are two. */
function row(
  { by: _by, memory: _memory, removes_old_ticket: _removes, doc: _doc, ...effects }: Move,
  lazyGuards: ReadonlySet<string>,
) {
  const { from, to, requires, lease_lost_reason, ...rest } = effects;
  const [first, second] = to;
  return {
    ...rest,
    from: Object.fromEntries(from.map((state) => [state, true])),
    to: second === undefined ? first : "asked",
    lease_lost_reason: REASON_LETTERS.find(([reason]) => reason === lease_lost_reason)?.[1],
    ...Object.fromEntries(requires.map((guard) => [`needs_${guard}`, true])),
    ...(requires.some((guard) => lazyGuards.has(guard)) && { needs_lazy_guards: true }),
  };
}

const isNumber = (name: FieldName) => /number|instant/.test(FIELDS[name].type);

/** A Lua expression: a packed field as text; empty where it is absent. */
const textOf = (name: FieldName): string =>
  isNumber(name) ? `record.${name} and digits(record.${name}) or ''` : `record.${name} or ''`;

/** Lua expressions for an own field: its name for HMGET, and its text in the answer. A known one is not read. */
const askedName = (name: FieldName): string => `known.${name} and '' or '${name}'`;
const ownText = (name: FieldName, at: number): string =>
  `known.${name} and '${GIVEN}' or own[${at + 1}] or ''`;

function readers(): string {
  const packed = READ_NAMES.filter(isPacked);
  const own = READ_NAMES.filter((name) => !isPacked(name));
  const { refs: _refs, ...lines } = EVENT_LINES;
  return `function read_record(key)
  local packed = redis.call('HGET', key, '${PACKED}')
  return packed and cmsgpack.unpack(packed) or {}
end
function gateway_fields()
  local own = known.all and {} or redis.call('HMGET', key, ${own.map(askedName).join(", ")})
  return table.concat({ ${[...packed.map(textOf), ...own.map(ownText)].join(", ")} }, '\\n')
end
function event_text(more)
  return table.concat({ ${Object.values(lines)
    .map(({ lua }) => lua)
    .join(", ")} }, '\\n')
end`;
}

/** Lua expressions; `at` is the timer's field. */
const CONDITIONS: Record<Condition, (at: Timer["at"]) => string> = {
  pending: () => "not record.unpublished and has_pending()",
  unpublished: () => "record.unpublished",
  never_leased: () => "record.fence == 0",
  leased: () => "record.lease_expires_at",
  fails_over_budget: () => "record.stop_at and not asks_over_budget()",
  asks_over_budget: () => "record.stop_at and asks_over_budget()",
  attempts_left: () => "record.attempt < record.max_attempts",
  attempts_spent: () => "record.attempt >= record.max_attempts",
  // The first comparison is cheap, and almost always decides.
  outage: (at) => `record.${at} and now >= record.${at} and end_of_outage('${at}')`,
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
    const tests = [inStates(states), condition && CONDITIONS[condition](at)].filter(
      (test) => test !== undefined,
    );
    const field = at === "now" ? "now" : `record.${at}`;
    const pause = plus && { retention: " + cmd.retention_ms", pause: ` + ${NUMBERS.follow_ms}` }[plus];
    const call = `timer(${field}${pause ?? ""}, ${toLua(does)}, ${toLua(code)})`;
    return tests.length === 0 ? `  ${call}` : `  if ${tests.join(" and ")} then ${call} end`;
  });
  return `function look_at_timers()
  soonest, due, due_code = nil, nil, nil
  local state, ended = record.state, is_terminal(record.state)
${lines.join("\n")}
end`;
}

/** The functions that are defined at each call. `lazyGuards`: the guards that lazy/guards.lua checks. */
export function tables(lazyGuards: ReadonlySet<string>): string {
  return [
    readers(),
    timers(),
    mapFunction(
      "row",
      MOVE_NAMES.map((name) => [name, row(MOVES[name], lazyGuards)]),
    ),
    `function is_terminal(state) return ${TERMINAL_STATES.map((name) => `state == '${name}'`).join(" or ")} end`,
    `function agent_defaults() return ${toLua(agentNumbers(agentRequestSchema.parse({})))} end`,
  ].join("\n");
}

/** The functions that few moves need. */
export function lazyTables(): string {
  const codes = [
    "attempts_exhausted",
    "budget_exceeded",
    "worker_unavailable",
    "deadline_exceeded",
    "interrupt_expired",
    "not_picked_up",
  ] as const;
  return [
    mapFunction(
      "lost_reason",
      REASON_LETTERS.map(([reason, letter]) => [letter, reason]),
    ),
    mapFunction(
      "failure_json",
      codes.map((code) => [code, JSON.stringify(failure(code))]),
    ),
  ].join("\n");
}
