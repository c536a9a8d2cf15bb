/**
 * The live delegations that the reader may see, and those that ended just now. Each is a signal of its own, so that an
 * event redraws one row.
 */
import { batch, computed, type Signal, signal } from "@preact/signals";
import { ErrandApiError } from "../../client/errors.ts";
import { type Delegation, isTerminal, LIVE_STATES, type State } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { checkSession, isCurrent } from "../session/session.ts";
import type { Connection } from "./connection.ts";
import { afterEvent, asks, type ListedDelegation, toListed } from "./listed.ts";

/** How long an ended delegation stays in view. */
const LINGER_MS = 20_000;
const PAGE = 100;
/** At most this many pages are read: a bound for brokers with very many delegations. */
const MAX_PAGES = 100;
/** Read first: lists are newest first, so among many, work in progress and questions would come last. */
const URGENT = LIVE_STATES.filter((state) => state !== "submitted");

const delegations = signal<ReadonlyMap<string, Signal<ListedDelegation>>>(new Map());
/** The progress of the first reading: nothing, work in progress and questions, or everything. */
const readSoFar = signal<0 | 1 | 2>(0);
export const hasQuestions = computed(() => readSoFar.value > 0);
export const isLoaded = computed(() => readSoFar.value === 2);

/** Newest first. */
export const inView = computed(() => [...delegations.value.values()]);
/** The delegations that ask a question, the soonest to expire first. */
export const asking = computed(() =>
  inView.value
    .filter((listed) => asks(listed.value.state) && listed.value.interrupt !== null)
    .sort((a, b) => expiryOf(a.value) - expiryOf(b.value)),
);
/** When its question expires. */
export const expiryOf = ({ interrupt }: ListedDelegation): number =>
  Date.parse(interrupt?.expires_at ?? "") || 0;

export const listedOf = (id: string): Signal<ListedDelegation> | undefined => delegations.value.get(id);

export function clearDelegations(): void {
  delegations.value = new Map();
  readSoFar.value = 0;
}

/** Reads all live delegations, those in progress first, and forgets those that are no longer live. */
export async function readDelegations({ pages }: Connection, abort: AbortSignal): Promise<void> {
  const urgent = await readAll(pages, URGENT, abort);
  if (!isLoaded.value) readSoFar.value = 1;
  // A delegation that arrives by an event meanwhile may be too new for the list.
  const before = [...delegations.value.values()];
  // Those in progress again: some may have been queued at the first look.
  const found = await readAll(pages, LIVE_STATES, abort);
  // Among very many, those in progress may be too old for the pages that are read.
  const gone = before.filter(
    ({ value: { id, state } }) => !found.has(id) && !urgent.has(id) && !isTerminal(state),
  );
  drop(gone.map(({ value }) => value.id));
  readSoFar.value = 2;
}

async function readAll(
  pages: Connection["pages"],
  state: readonly State[],
  abort: AbortSignal,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { delegations, next_cursor } = await pages.list({ state, limit: PAGE, cursor }, abort);
    for (const { id } of delegations) found.add(id);
    keep(delegations.map(toListed));
    cursor = next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  return found;
}

/** Applies events in order. Reads a delegation again if its events lack a field that is needed. */
export function applyEvents(connection: Connection, events: readonly DelegationEvent[]): void {
  const changed = new Map<string, ListedDelegation>();
  const unclear = new Set<string>();
  for (const event of events) {
    const id = event.delegation_id;
    const known = changed.get(id) ?? listedOf(id)?.value;
    if (known && event.seq <= known.version) continue;
    const after = afterEvent(known, event);
    if (after) changed.set(id, after);
    else unclear.add(id);
  }
  keep([...changed.values()]);
  for (const id of unclear) void refresh(connection, id);
}

/** The pause after a reading that failed. */
const AGAIN_MS = 5_000;
/** The delegations that are read again after it. */
const failed = new Set<string>();

/** Reads one delegation again, and again if that fails: no event may follow. Never rejects. */
export async function refresh(connection: Connection, id: string): Promise<void> {
  const isOver = () => !isCurrent(connection);
  try {
    const delegation = await connection.delegator.get(id);
    if (!isOver()) show(delegation);
  } catch (error) {
    checkSession(error);
    if (isOver()) return;
    if (error instanceof ErrandApiError && error.code === "delegation_not_found") return drop([id]);
    if (failed.has(id)) return;
    failed.add(id);
    setTimeout(() => {
      failed.delete(id);
      if (!isOver()) void refresh(connection, id);
    }, AGAIN_MS);
  }
}

/** Shows a delegation as the broker returned it. */
export function show(delegation: Delegation): void {
  const listed = toListed(delegation);
  // A delegation that ended long ago is not shown.
  if (isTerminal(listed.state) && listedOf(listed.id) === undefined) remember(listed.id);
  else keep([listed]);
}

/** Those that ended lately. A list that was read before that must not bring them back. */
const ended = new Set<string>();
/** Longer than the reading of all pages takes. */
const ENDED_MS = 120_000;

function remember(id: string): void {
  if (ended.has(id)) return;
  ended.add(id);
  setTimeout(() => ended.delete(id), ENDED_MS);
}

function keep(news: readonly ListedDelegation[]): void {
  batch(() => {
    const added: [string, Signal<ListedDelegation>][] = [];
    for (const listed of news) {
      const known = listedOf(listed.id);
      if (known ? known.value.version > listed.version : ended.has(listed.id)) continue;
      if (known) known.value = { ...listed, lease: withLength(listed.lease, known.value.lease) };
      else added.push([listed.id, signal(listed)]);
      if (!isTerminal(listed.state)) continue;
      remember(listed.id);
      setTimeout(drop, LINGER_MS, [listed.id]);
    }
    if (added.length > 0) delegations.value = new Map([...added, ...delegations.value].sort(newestFirst));
  });
}

/** A lease that was read again does not say how long it is; the event that granted it did. */
const withLength = (
  lease: ListedDelegation["lease"],
  before: ListedDelegation["lease"],
): ListedDelegation["lease"] => lease && { ms: before?.ms, ...lease };

const newestFirst = (a: [string, Signal<ListedDelegation>], b: [string, Signal<ListedDelegation>]): number =>
  b[1].peek().created_at.localeCompare(a[1].peek().created_at) || b[0].localeCompare(a[0]);

function drop(ids: readonly string[]): void {
  if (ids.length === 0) return;
  const left = new Map(delegations.value);
  for (const id of ids) left.delete(id);
  delegations.value = left;
}

/** Forgets one that was erased. */
export const clearOne = (id: string): void => drop([id]);
