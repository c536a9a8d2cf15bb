/** The figures of a run: counts and times. The checker decides whether they are right. */
import { MOVES } from "../../src/lifecycle/states.ts";
import { voidAt } from "./check/loss.ts";
import type { Call, History } from "./history.ts";
import { COUNCIL, RAISED } from "./setup.ts";

export interface Summary {
  readonly seconds: number;
  readonly delegations: number;
  readonly events: number;
  readonly sightings: number;
  readonly leases: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly calls: Readonly<
    Record<string, { readonly ok: number; readonly fail: number; readonly info: number }>
  >;
  /** The number of delegations in each final state. */
  readonly ends: Readonly<Record<string, number>>;
  readonly deliveries: number;
  readonly budgets: {
    readonly given: number;
    /** At the end; the others were not exceeded, or raised. */
    readonly exceeded: number;
    readonly failed: number;
    readonly raised: number;
  };
  /** Conversations with more than one delegation. */
  readonly conversations: number;
  readonly rules: {
    readonly created: number;
    readonly revoked: number;
    /** Answers and votes that they gave. */
    readonly answers: number;
  };
  readonly notices: {
    readonly received: number;
    /** With the same id as one before. */
    readonly repeated: number;
    /** Of links. */
    readonly pressed: number;
    readonly answered: number;
  };
  /** Of questions that need several people. */
  readonly votes: { readonly given: number; readonly approved: number; readonly denied: number };
  /** Of submits that were accepted at the first try, in ms. */
  readonly accepted_ms: { readonly p50: number; readonly p99: number; readonly max: number };
  /** The longest time that a submit went without an answer, in ms. */
  readonly unanswered_ms: number;
  /** From the end of a fault of Redis or its network to the next accepted submit, in ms. */
  readonly recovered_ms: { readonly p50: number; readonly max: number };
  /** Replies on a lost lease. */
  readonly late_replies: number;
  /** Acknowledged writes that Redis lost later, as documented for everysec. */
  readonly void_acknowledgements: number;
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0) * 10) / 10;
}

function count<T>(items: Iterable<T>, nameOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1;
  return counts;
}

const OF_REDIS = /^(?:redis|link)-/;

export function summarize(history: History, seconds: number): Summary {
  const { calls, faults, dump, stored } = history;
  const submits = calls.filter(({ op }) => op === "delegate");
  const accepted = submits.filter(({ result }) => result === "ok");
  const times = accepted.map(({ start, end }) => end - start);
  const answers = accepted.map(({ end }) => end).sort((a, b) => a - b);
  const recoveries = faults
    .filter(({ fault, phase }) => phase === "end" && OF_REDIS.test(fault))
    .flatMap(({ t }) => {
      const next = answers.find((end) => end > t);
      return next === undefined ? [] : [next - t];
    });
  const ops: Record<string, { ok: number; fail: number; info: number }> = {};
  for (const { op, result } of calls) {
    const row = ops[op] ?? { ok: 0, fail: 0, info: 0 };
    row[result] += 1;
    ops[op] = row;
  }
  const isVoid = voidAt(history);
  return {
    seconds: Math.round(seconds),
    delegations: dump.records.length,
    events: [...stored.values()].reduce((sum, events) => sum + events.length, 0),
    sightings: history.events.length,
    leases: calls.reduce((sum, { grants = [] }) => sum + grants.length, 0),
    faults: count(
      faults.filter(({ phase }) => phase === "begin"),
      ({ fault }) => fault,
    ),
    calls: ops,
    ends: count(dump.records, ({ state }) => state),
    deliveries: history.deliveries.length,
    budgets: budgetsOf(history),
    conversations: conversationsOf(history),
    rules: rulesOf(history),
    notices: noticesOf(history),
    votes: votesOf(history),
    accepted_ms: { p50: quantile(times, 0.5), p99: quantile(times, 0.99), max: quantile(times, 1) },
    unanswered_ms: Math.round(Math.max(0, ...submits.flatMap(waited))),
    recovered_ms: { p50: quantile(recoveries, 0.5), max: quantile(recoveries, 1) },
    late_replies: calls.filter(({ op, code }) => op === "reply" && code === "lease_lost").length,
    void_acknowledgements: accepted.filter(
      ({ id, end }) => id !== undefined && isVoid(end) && !stored.has(id),
    ).length,
  };
}

function budgetsOf({ finals, calls }: History): Summary["budgets"] {
  const ends = [...new Map(finals.map((final) => [final.id, final])).values()];
  const limited = ends.filter(({ budget }) => budget?.limit !== undefined);
  return {
    given: limited.length,
    exceeded: limited.filter(({ budget }) => budget?.exceeded === true).length,
    failed: limited.filter(({ error }) => error === "budget_exceeded").length,
    raised: calls.filter(({ op, result, text }) => op === "answer" && result === "ok" && text === RAISED)
      .length,
  };
}

function rulesOf({ calls, stored }: History): Summary["rules"] {
  const accepted = (op: string) =>
    new Set(calls.filter((call) => call.op === op && call.result === "ok").map(({ rule }) => rule)).size;
  const answers = [...stored.values()].flat().filter(({ answer }) => answer?.via === "rule").length;
  return { created: accepted("create_rule"), revoked: accepted("revoke_rule"), answers };
}

function noticesOf({ notices, calls, stored }: History): Summary["notices"] {
  const ids = new Set(notices.map(({ notice }) => notice));
  return {
    received: notices.length,
    repeated: notices.length - ids.size,
    pressed: calls.filter(({ op }) => op === "press").length,
    answered: [...stored.values()].flat().filter(({ answer }) => answer?.via === "link").length,
  };
}

function votesOf({ stored, dump }: History): Summary["votes"] {
  const council = dump.records.filter(({ target }) => target === COUNCIL);
  const events = council.flatMap(({ id }) => stored.get(id) ?? []);
  const answers = events.filter(({ status, answer }) => status === MOVES.answer.status && answer);
  const approved = answers.filter(({ answer }) => answer?.votes !== undefined).length;
  return {
    given: events.filter(({ status }) => status === MOVES.vote.status).length,
    approved,
    denied: answers.length - approved,
  };
}

function conversationsOf({ dump }: History): number {
  const talks = count(dump.records, ({ target, delegator, context }) => `${target} ${delegator} ${context}`);
  return Object.values(talks).filter((size) => size > 1).length;
}

/** The duration of a call that was answered or given up; calls of killed processes have none. */
const waited = ({ start, end }: Call): number[] => (Number.isFinite(end) ? [end - start] : []);
