/** Generates legal histories: what a broker without faults produces. Limit: one subscriber, two gateways. */
import fc from "fast-check";
import { MOVE_NAMES, MOVES, type Move } from "../../src/lifecycle/states.ts";
import { isTerminal, type State } from "../../src/schema/delegation.ts";
import { type Call, emptyHistory, type History, type StoredEvent, type StoredRecord } from "./history.ts";
import type { RowOf } from "./rows.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** The parts that a mutation may change. */
export interface Draft extends Mutable<History> {
  calls: Mutable<Call>[];
  events: Mutable<RowOf<"event">>[];
  subscribes: RowOf<"subscribe">[];
  resets: RowOf<"reset">[];
  deliveries: RowOf<"delivery">[];
  a2a: RowOf<"a2a">[];
  agui: RowOf<"agui">[];
  faults: RowOf<"fault">[];
  outages: RowOf<"outage">[];
  stored: Map<string, Mutable<StoredEvent>[]>;
  finals: Mutable<History["finals"][number]>[];
  dump: { records: Mutable<StoredRecord>[]; tickets: string[] };
  waiting: { records: Mutable<StoredRecord>[]; tickets: string[] };
  logs: { source: string; line: string }[];
  secrets: string[];
  deaths: string[];
}

const CALLER = "caller:alice";
export const SECRET = "whsec_of-the-test";

/** The moves of each delegation: each number picks one of the moves that are legal at that point. */
const walks = fc.array(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 6,
});

export const histories: fc.Arbitrary<Draft> = walks.map(build);

function legal(state: State): readonly Move[] {
  return MOVE_NAMES.map((name): Move => MOVES[name]).filter(
    ({ event, from }) => event !== null && from.includes(state),
  );
}

function build(drawn: readonly (readonly number[])[]): Draft {
  const draft: Draft = { ...emptyHistory(), secrets: [SECRET] };
  draft.subscribes.push({ t: 0, proc: "s", row: "subscribe", sub: "s", as: CALLER, from: "0" });
  for (const [n, walk] of drawn.entries()) one(draft, n, walk);
  return draft;
}

function one(draft: Draft, n: number, walk: readonly number[]): void {
  const id = `dlg_0_${n}`;
  const key = `key-${n}`;
  let t = 1_000 * n;
  let fence = 0;
  const now: { state: State } = { state: "submitted" };
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
    const event = { seq, type, status, state, hash: `${id}/${seq}` };
    events.push(event);
    const about = { id, seq, type, status, state, delegator: CALLER, target: "scout", hash: event.hash };
    draft.events.push({ t, proc: "s", row: "event", sub: "s", cursor: String(t), ...about });
  };
  const step = (move: Move) => {
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
  let reply = "";
  if (is("working")) {
    reply = `completed ${key} ${fence}`;
    call("reply", {
      lease: `lse_${n}_${fence}`,
      fence,
      text: reply,
      wants: "completed",
      outcome: "matched",
      state: "completed",
    });
    step(MOVES.complete);
  }
  const { state } = now;
  t += 10;
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
    target: "scout",
    delegator: CALLER,
    key,
  });
  for (const gateway of ["gateway-0", "gateway-1"]) {
    draft.finals.push({ gateway, id, found: true, state, version, key, reply, hash: id });
  }
}

/** The end of an AG-UI run about a delegation in this state. */
function runEnd(state: State): { type: string; state: string } {
  if (state === "completed") return { type: "RUN_FINISHED", state: "success" };
  if (state === "canceled") return { type: "RUN_FINISHED", state: "cancelled" };
  return { type: "RUN_ERROR", state };
}
