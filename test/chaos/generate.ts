/** Generates legal histories: what a broker without faults produces. Limit: one subscriber, two gateways. */
import fc from "fast-check";
import { MOVE_NAMES, MOVES, type Move } from "../../src/lifecycle/states.ts";
import { isTerminal, type State } from "../../src/schema/delegation.ts";
import {
  type Call,
  emptyHistory,
  type FinalRule,
  type History,
  type ShownAnswer,
  type StoredEvent,
  type StoredRecord,
} from "./history.ts";
import type { RowOf } from "./rows.ts";
import { COUNCIL, EVERYTHING } from "./setup.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** The parts that a mutation may change. */
export interface Draft extends Mutable<History> {
  calls: Mutable<Call>[];
  events: Mutable<RowOf<"event">>[];
  subscribes: RowOf<"subscribe">[];
  resets: RowOf<"reset">[];
  deliveries: RowOf<"delivery">[];
  notices: Mutable<RowOf<"notice">>[];
  a2a: RowOf<"a2a">[];
  agui: RowOf<"agui">[];
  faults: RowOf<"fault">[];
  outages: RowOf<"outage">[];
  stored: Map<string, Mutable<StoredEvent>[]>;
  finals: Mutable<History["finals"][number]>[];
  rules: Mutable<FinalRule>[];
  dump: { records: Mutable<StoredRecord>[]; tickets: string[] };
  waiting: { records: Mutable<StoredRecord>[]; tickets: string[] };
  logs: { source: string; line: string }[];
  secrets: string[];
  deaths: string[];
}

const CALLER = "caller:alice";
const TALK = "talk";
/** Has a subscription to the council's work. */
const WATCHER = "approver:ann";
const SUBSCRIPTION = "sub_1";
export const SECRET = "whsec_of-the-test";

/** The moves of each delegation: each number picks one of the moves that are legal at that point. */
const walks = fc.array(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 6,
});

export const histories: fc.Arbitrary<Draft> = walks.map(build);

/** An action that the rule of every history fits. */
export const ACTION = { request: "may", name: "deploy", arguments: { n: 3 } };
const RULE: FinalRule = {
  ...{ id: "rul_1", by: "approver:ann", agent: "scout", action: "deploy", decision: "approve" },
  ...{ arguments: [{ name: "n", maximum: 5 }], only_these_arguments: true, uses: 0, max_uses: 1_000 },
  ...{ created: 0, expires: null, revoked: null },
};
/** An answer to {@link ACTION}. */
export const saying = (
  id: string,
  by: string,
  decision: string,
  more: Partial<ShownAnswer> & { readonly rule?: string; readonly changes?: string } = {},
): ShownAnswer => {
  const { rule, changes = "", ...rest } = more;
  const requests = [{ request: ACTION.request, decision, rule, changes }];
  return { id, by, via: rule === undefined ? "rest" : "rule", requests, ...rest };
};

/** What the accepted reply of a delegation reports. */
const TOKENS = 10;

/** No budget is exceeded. */
function legal(state: State): readonly Move[] {
  return MOVE_NAMES.map((name): Move => MOVES[name]).filter(
    (move) => move.event !== null && move.from.includes(state) && move !== MOVES.overrun,
  );
}

function build(drawn: readonly (readonly number[])[]): Draft {
  const draft: Draft = { ...emptyHistory(), secrets: [SECRET], rules: [{ ...RULE }] };
  draft.subscribes.push({ t: 0, proc: "s", row: "subscribe", sub: "s", as: CALLER, from: "0" });
  for (const [n, walk] of drawn.entries()) one(draft, n, walk);
  draft.calls.push({
    ...{ proc: "q", op: "subscribe", as: WATCHER, subscription: SUBSCRIPTION, text: EVERYTHING, to_ms: 0 },
    ...{ start: 0, end: 1, result: "ok" },
  });
  makeTree(draft);
  return draft;
}

function one(draft: Draft, n: number, walk: readonly number[]): void {
  const id = `dlg_0_${n}`;
  const key = `key-${n}`;
  let t = 1_000 * n;
  let fence = 0;
  let attempt = 1;
  const now: { state: State } = { state: "submitted" };
  const target = n % 2 === 1 ? COUNCIL : "scout";
  let asked = "";
  /** The votes for what is approved now. */
  let votes: { readonly by: readonly string[]; readonly changes: string } = { by: [], changes: "" };
  const answerOf = (status: string, seq: number): ShownAnswer | undefined => {
    if (status === MOVES.vote.status) {
      const [by, changes, voided] = [[`approver:a${seq}`], `${seq}`, votes.by];
      votes = { by, changes };
      const linked = {
        asked,
        subscription: SUBSCRIPTION,
        link: `${n}/${seq}`,
        text: by[0],
        decision: "approve",
      };
      call("press", linked);
      return { ...saying(asked, `approver:a${seq}`, "approve", { changes, votes: by, voided }), via: "link" };
    }
    if (status !== MOVES.answer.status) return undefined;
    const { changes } = votes;
    const all = [...votes.by, `approver:a${seq}`];
    if (target === COUNCIL)
      return all.length > 1
        ? saying(asked, `approver:a${seq}`, "approve", { changes, votes: all })
        : saying(asked, CALLER, "deny");
    for (const rule of draft.rules) rule.uses += 1;
    return saying(asked, RULE.by, "approve", { rule: RULE.id });
  };
  const events: Mutable<StoredEvent>[] = [];
  const call = (op: string, more: Partial<Call>) => {
    t += 10;
    draft.calls.push({ proc: "p", op, id, start: t, end: t + 5, result: "ok", ...more });
  };
  const is = (state: State): boolean => now.state === state;
  const leave = (type: string, status: string) => {
    t += 10;
    const seq = events.length + 1;
    const { state } = now;
    const isGrant = status === MOVES.lease.status;
    const answer = answerOf(status, seq);
    const isAsked = status === MOVES.interrupt.status;
    if (isAsked) [asked, votes] = [`int_${n}_${seq}`, { by: [], changes: "" }];
    const event = {
      ...{ seq, type, status, state, hash: `${id}/${seq}`, at: t, ...(isGrant && { attempt }), answer },
      ...(isAsked && { asked: { id: asked, kind: "input", actions: [ACTION] } }),
    };
    events.push(event);
    const about = { id, seq, type, status, state, delegator: CALLER, target, hash: event.hash };
    draft.events.push({ t, proc: "s", row: "event", sub: "s", cursor: String(t), ...about });
  };
  const step = (move: Move) => {
    attempt += move.spends ? 1 : move.refunds ? -1 : 0;
    if (move.lease === "grant") {
      fence += 1;
      const grant = { id, lease: `lse_${n}_${fence}`, fence, attempt: 1, granted_at: t };
      call("lease", { grants: [grant] });
    }
    const [to] = move.to;
    now.state = to ?? now.state;
    leave(move.event ?? "", move.status ?? "");
  };

  call("delegate", { key, as: CALLER, via: "callback" });
  leave("DELEGATION_SENT", "queued");
  for (const choice of walk) {
    const isLapsed = events.at(-1)?.status === MOVES.lapse.status;
    const moves = legal(now.state).filter((move) => move !== MOVES.reclaim || isLapsed);
    const move = moves[choice % moves.length];
    if (move) step(move);
    if (isTerminal(now.state)) break;
  }
  draft.waiting.records.push({
    ...{ id: `${id}w`, state: "submitted", version: 1, ticket: 1, fence: 0, target: "shelf" },
    ...{ delegator: CALLER, key: `${key}w` },
  });
  draft.waiting.tickets.push(`${id}w.1`);
  // Finally the delegation is completed, whatever its state.
  if (is("input_required") || is("auth_required")) step(MOVES.answer);
  if (is("awaiting_children")) step(MOVES.resume);
  if (is("submitted")) step(MOVES.lease);
  let [reply, tokens] = ["", 0];
  if (is("working")) {
    reply = `completed ${key} ${fence}`;
    call("reply", {
      lease: `lse_${n}_${fence}`,
      fence,
      text: reply,
      wants: "completed",
      outcome: "matched",
      state: "completed",
      tokens: TOKENS,
    });
    tokens = TOKENS;
    step(MOVES.complete);
  }
  const { state } = now;
  t += 10;
  if (target === COUNCIL && isTerminal(state))
    draft.notices.push({
      ...{ t, proc: "r", row: "notice", subscription: SUBSCRIPTION, as: WATCHER, notice: `ntf_${n}` },
      ...{ type: "ended", id, what: "ended", count: 1, genuine: true },
    });
  draft.deliveries.push({
    t,
    proc: "r",
    row: "delivery",
    kind: "callback",
    id,
    seq: events.length,
    state,
    genuine: true,
  });
  draft.a2a.push({ t, proc: "a", row: "a2a", id, stream: id, state: `TASK_STATE_${state.toUpperCase()}` });
  const run = { t, proc: "u", row: "agui" as const, id, stream: id };
  draft.agui.push({ ...run, type: "RUN_STARTED", state: "" }, { ...run, ...runEnd(state) });
  draft.stored.set(id, events);
  const version = events.length;
  draft.dump.records.push({
    id,
    state,
    version,
    ticket: fence,
    fence,
    target,
    delegator: CALLER,
    key,
    context: `${TALK} ${n}`,
  });
  for (const gateway of ["gateway-0", "gateway-1"]) {
    draft.finals.push({ gateway, id, found: true, state, version, key, reply, hash: id, tokens });
  }
}

/** All are children of the first one, which has a budget that they do not exceed. */
function makeTree({ dump, finals, stored }: Draft): void {
  const [root, ...parts] = dump.records;
  for (const part of parts) Object.assign(part, { parent: root?.id });
  const own = finals.filter(({ gateway }) => gateway === "gateway-0");
  const tokens = own.reduce((sum, final) => sum + (final.tokens ?? 0), 0);
  const begun = [...stored.values()].map((events) =>
    Math.max(0, ...events.map(({ attempt = 0 }) => attempt)),
  );
  const attempts = begun.reduce((sum, one) => sum + one, 0);
  for (const final of finals)
    if (final.id === root?.id) final.budget = { limit: { tokens: 1_000 }, used: { tokens, attempts } };
}

/** The end of an AG-UI run about a delegation in this state. */
function runEnd(state: State): { type: string; state: string } {
  if (state === "completed") return { type: "RUN_FINISHED", state: "success" };
  if (state === "canceled") return { type: "RUN_FINISHED", state: "cancelled" };
  return { type: "RUN_ERROR", state };
}
