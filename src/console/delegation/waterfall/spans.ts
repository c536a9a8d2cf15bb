/** The bars of a delegation: for how long it was in which state, from its events or, without them, from itself. */
import { isTerminal, type State } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { PHASES, type Phase } from "../../ui/words.ts";
import type { Node } from "./node.ts";

export interface Span {
  readonly state: State;
  /** How it is drawn: as its state or, once an attempt is over, as that ended. A pause: no worker may take it yet. */
  readonly look: Phase | "pause";
  readonly from: number;
  /** Null: it goes on. */
  readonly to: number | null;
  /** Null: between attempts. */
  readonly attempt: number | null;
  /** The parts for whose ends it waits. */
  readonly awaited?: readonly string[] | undefined;
}

/** How an attempt ended, by the status of an event that does not end the delegation. */
const ENDS_ATTEMPT: Readonly<Record<string, Phase>> = { lease_expired: "failed", retrying: "failed" };

/** The events may be some of all: the delegation says what is missing at the end. */
export function spansOf(node: Node, events: readonly DelegationEvent[]): readonly Span[] {
  const [first] = events;
  if (first === undefined) return spansWithout(node);
  const spans: Span[] = [];
  const outcomes = new Map<number, Phase>();
  let attempt: number | null = null;
  let notBefore = Date.parse(first.status === "delayed" ? (node.not_before_at ?? "") : "");
  let { state } = first;
  let from = Date.parse(node.created_at);
  let awaited: Span["awaited"];
  const close = (to: number | null) =>
    spans.push(...spansUntil({ state, from, to, attempt, awaited }, notBefore));
  for (const event of events) {
    const { status = "" } = event;
    const isLease = event.status === "leased" || event.status === "reclaimed";
    if (event.state === state && !isLease) continue;
    const at = Date.parse(event.at);
    close(at);
    const outcome = ENDS_ATTEMPT[status] ?? (isTerminal(event.state) ? PHASES[event.state] : undefined);
    if (attempt !== null && outcome) outcomes.set(attempt, outcome);
    if (isLease) attempt = event.attempt;
    // A lease that is reclaimed takes back the end of its attempt.
    if (isLease && attempt !== null) outcomes.delete(attempt);
    if (event.state === "submitted" && status !== "answered") attempt = null;
    const retryAt = "retry_at" in event ? event.retry_at : undefined;
    awaited = event.status === "awaiting" ? event.awaits.children : undefined;
    [state, from, notBefore] = [event.state, at, Date.parse(retryAt ?? "")];
  }
  if (!isTerminal(state)) {
    close(node.finished_at === null ? null : Date.parse(node.finished_at));
    if (attempt !== null && isTerminal(node.state)) outcomes.set(attempt, PHASES[node.state]);
  }
  return spans.map((span) => withOutcome(span, outcomes));
}

const withOutcome = (span: Span, outcomes: ReadonlyMap<number, Phase>): Span => {
  const outcome = span.attempt === null || span.look !== "working" ? undefined : outcomes.get(span.attempt);
  return outcome === undefined ? span : { ...span, look: outcome };
};

type Bare = Omit<Span, "look">;

/** One bar or, if no worker may take the work before an instant, two. */
function spansUntil(span: Bare, notBefore: number): readonly Span[] {
  const { state, from, to } = span;
  const look = PHASES[state];
  if (state !== "submitted" || !(notBefore > from)) return [{ ...span, look }];
  const pause = Math.min(notBefore, to ?? notBefore);
  const rest = to === null || to > pause ? [{ ...span, look, from: pause }] : [];
  return [{ ...span, look: "pause", to: pause }, ...rest];
}

/** All that a delegation says by itself. How long it was queued before its last lease is not known. */
function spansWithout(node: Node): readonly Span[] {
  const { state, attempt, created_at, finished_at, leased_at, not_before_at, questions } = node;
  const from = Date.parse(created_at);
  const to = finished_at === null ? null : Date.parse(finished_at);
  if (state === "submitted" && attempt === 1 && questions.length === 0)
    return spansUntil({ state, from, to, attempt: null }, Date.parse(not_before_at ?? ""));
  if (to !== null) return [{ state: "working", look: PHASES[state], from, to, attempt }];
  const since =
    state === "working" ? Date.parse(leased_at ?? created_at) : (questions.at(-1)?.askedAt ?? from);
  const before = attempt === 1 && questions.length === 0 ? "submitted" : "working";
  return [
    { state: before, look: PHASES[before], from, to: since, attempt: null },
    { state, look: PHASES[state], from: since, to: null, attempt, awaited: node.awaits?.children },
  ];
}

/** The width of a row in places. Bars in the same place cannot be told apart. */
const PLACES = 300;
/** Of several in one place, the last of these is drawn. */
const RANKS: readonly Span["look"][] = [
  "queued",
  "pause",
  "awaits",
  "canceled",
  "completed",
  "working",
  "asks",
  "failed",
];
const rankOf = ({ look }: Span): number => RANKS.indexOf(look);

/** The bars that can be seen: of narrow ones in the same place, one. */
export function visibleSpans(spans: readonly Span[], place: (instant: number) => number): readonly Span[] {
  const shown: Span[] = [];
  let narrowAt = -1;
  for (const span of spans) {
    const at = Math.floor(place(span.from) * PLACES);
    const isNarrow = span.to !== null && Math.floor(place(span.to) * PLACES) === at;
    const before = shown.at(-1);
    if (isNarrow && narrowAt === at && before) {
      if (rankOf(span) >= rankOf(before)) shown[shown.length - 1] = span;
      continue;
    }
    shown.push(span);
    narrowAt = isNarrow ? at : -1;
  }
  return shown;
}
