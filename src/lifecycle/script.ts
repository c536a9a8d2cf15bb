/**
 * The text of transition.lua with the head that is generated from the state table and the error table.
 * Limit: two scripts, one body: new work is refused when memory is short, work in flight is not.
 */
import { readFileSync } from "node:fs";
import { Script, toLua } from "../redis/script.ts";
import { type AgentSpec, agentRequestSchema } from "../schema/agent.ts";
import { type DelegationError, TERMINAL_STATES } from "../schema/delegation.ts";
import { ERRORS, type ErrorCode } from "../schema/errors.ts";
import { LEASE_LOST_REASONS } from "../schema/lease.ts";
import { LIMITS } from "../schema/limits.ts";
import { MOVES } from "./states.ts";

/** What the script works with beside the tables. */
export const NUMBERS = {
  /** A ticket that nobody popped is looked for after this long, and then ever more rarely. */
  check_ms: 5_000,
  check_max_ms: 300_000,
  /** What is owed besides the record is left to its gateway this long; then the sweep sees to it. */
  follow_ms: 5_000,
  /** Releases without a pause; further ones back off. */
  free_releases: 10,
  delegation_bytes: LIMITS.delegation_bytes.value,
  delegation_events: LIMITS.delegation_events.value,
  progress_per_second: LIMITS.progress_per_second.value,
  /** Events that the shard's own stream keeps for live subscribers. */
  live_events: 10_000,
} as const;

/** An error as it stands on a delegation, from the one table. */
export function failure(code: ErrorCode, message: string = ERRORS[code].title): DelegationError {
  const { category, retryable, recovery } = ERRORS[code];
  return { category, code, message, retryable, recovery };
}

/** The numbers of an agent that the script works with, in the units it works in; stored in the agent's hash. */
export function agentNumbers(spec: AgentSpec) {
  const { limits, backoff } = spec;
  return {
    max_attempts: limits.max_attempts,
    lease_ms: Math.round(limits.lease_seconds * 1000),
    max_working: limits.max_working,
    max_waiting: limits.max_waiting,
    interrupt_ttl_ms: Math.round(limits.interrupt_ttl_seconds * 1000),
    backoff_initial_ms: backoff.initial_ms,
    backoff_factor: backoff.factor,
    backoff_max_ms: backoff.max_ms,
    backoff_jitter: backoff.jitter,
  };
}

function head(flags: string): string {
  const letters = LEASE_LOST_REASONS.map((reason, index) => [reason, "ABCDEFGH".charAt(index)] as const);
  const ends = Object.fromEntries([
    ...letters,
    ...letters.map(([reason, letter]) => [letter, reason] as const),
  ]);
  const codes = ["attempts_exhausted", "deadline_exceeded", "interrupt_expired", "not_picked_up"] as const;
  const failures = Object.fromEntries(codes.map((code) => [code, JSON.stringify(failure(code))]));
  return [
    `#!lua${flags}`,
    `local MOVES = ${toLua(MOVES)}`,
    `local TERMINAL = ${toLua(Object.fromEntries(TERMINAL_STATES.map((state) => [state, true])))}`,
    `local ENDS = ${toLua(ends)}`,
    `local FAILURES = ${toLua(failures)}`,
    `local AGENT_DEFAULTS = ${toLua(agentNumbers(agentRequestSchema.parse({})))}`,
    `local LIMITS = ${toLua(NUMBERS)}`,
  ].join("\n");
}

const body = readFileSync(new URL("./transition.lua", import.meta.url), "utf8");

export const newWorkScript = new Script(`${head("")}\n${body}`);
export const inFlightScript = new Script(`${head(" flags=allow-oom")}\n${body}`);
