/**
 * One action on many delegations, a few at a time. It can be stopped, and goes on where it ended. To repeat it does no harm:
 * a second try of the same delegation returns the first one's, and a second cancel changes nothing.
 */
import { effect, signal, untracked } from "@preact/signals";
import { ErrandApiError } from "../../client/errors.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type Connection, lostSince } from "../data/connection.ts";
import { show } from "../data/delegations.ts";
import { checkSession, isCurrent, session } from "../session/session.ts";
import { isMissing } from "../ui/or-gone.ts";
import { isUncertain } from "../ui/problem.tsx";
import type { Act } from "./acts.ts";

export interface Done {
  readonly delegation: Delegation;
  /** The new one. */
  readonly again: Delegation | null;
}

export interface Refused {
  readonly delegation: Delegation;
  readonly error: unknown;
}

export interface Run {
  readonly act: Act;
  readonly reason: string | undefined;
  readonly connection: Connection;
  readonly total: number;
  readonly left: readonly Delegation[];
  /** Of those left: the broker was asked, and did not say whether it did it. */
  readonly unsure: ReadonlySet<string>;
  readonly done: readonly Done[];
  readonly refused: readonly Refused[];
  /** `losing`: an answer is missing, and the last requests end. */
  readonly state: "running" | "stopping" | "losing" | "stopped" | "away" | "over";
}

/** The last one, until the reader closes it or the session ends. */
export const run = signal<Run | null>(null);

/** They get each delegation that a run has changed. */
export const onChanged = new Set<(changed: Delegation) => void>();

/** The browser keeps its other connections for the views. */
const AT_ONCE = 3;

const BUSY = ["running", "stopping", "losing"];
export const isBusy = (): boolean => BUSY.includes(run.value?.state ?? "");

export function start(act: Act, delegations: readonly Delegation[], reason?: string): void {
  const connection = session.peek()?.connection;
  if (!connection || isBusy() || delegations.length === 0) return;
  const begun = { act, reason, connection, total: delegations.length, left: delegations };
  run.value = { ...begun, unsure: new Set(), done: [], refused: [], state: "running" };
  void work(connection);
}

export function goOn(): void {
  const { value } = run;
  if (!value || isBusy()) return;
  change({ state: "running" });
  void work(value.connection);
}

/** What is on its way is finished. */
export function stop(): void {
  if (run.value?.state === "running") change({ state: "stopping" });
}

export function close(): void {
  if (!isBusy()) run.value = null;
}

function change(part: Partial<Run>): void {
  const { value } = run;
  if (value) run.value = { ...value, ...part };
}

async function work(connection: Connection): Promise<void> {
  const queue = [...(run.peek()?.left ?? [])];
  /** Agents that take nothing more: each further try would only wait. */
  const full = new Map<string, unknown>();
  const workOff = async () => {
    while (isCurrent(connection) && run.peek()?.state === "running") {
      const next = queue.shift();
      if (!next) return;
      if (full.has(next.target)) refuse(next, full.get(next.target));
      else await tryOne(connection, next, full);
    }
  };
  addEventListener("beforeunload", askFirst);
  await Promise.all(Array.from({ length: AT_ONCE }, workOff));
  removeEventListener("beforeunload", askFirst);
  const ended = run.peek();
  if (!isCurrent(connection) || ended === null) return;
  change({ state: ended.left.length === 0 ? "over" : ended.state === "losing" ? "away" : "stopped" });
  if (lostSince.peek() === null) void lookAgain();
}

const askFirst = (event: Event): void => event.preventDefault();

async function tryOne(
  connection: Connection,
  delegation: Delegation,
  full: Map<string, unknown>,
): Promise<void> {
  const { act, reason } = run.peek() ?? {};
  const { id, target } = delegation;
  try {
    const { delegator } = connection;
    const result = act === "again" ? await delegator.redrive(id) : await delegator.cancel(id, reason);
    if (isCurrent(connection)) finish(delegation, result);
  } catch (error) {
    checkSession(error);
    if (!isCurrent(connection)) return;
    if (isUncertain(error)) {
      change({ state: "losing", unsure: new Set([...(run.peek()?.unsure ?? []), id]) });
      return;
    }
    if (error instanceof ErrandApiError && error.code === "queue_full") full.set(target, error);
    refuse(delegation, error);
  }
}

function finish(delegation: Delegation, result: Delegation): void {
  // A second look may have found it meanwhile.
  if (!run.peek()?.left.some(({ id }) => id === delegation.id)) return;
  const again = run.peek()?.act === "again" ? result : null;
  show(result);
  settle(delegation, { done: [...(run.peek()?.done ?? []), { delegation, again }] });
  const changed = again ? { ...delegation, redriven_as: again.id } : result;
  for (const listener of onChanged) listener(changed);
}

const refuse = (delegation: Delegation, error: unknown): void =>
  settle(delegation, { refused: [...(run.peek()?.refused ?? []), { delegation, error }] });

/** It is left no more. */
function settle({ id }: Delegation, part: Partial<Run>): void {
  const { left = [], unsure = [] } = run.peek() ?? {};
  change({
    ...part,
    left: left.filter((one) => one.id !== id),
    unsure: new Set([...unsure].filter((one) => one !== id)),
  });
}

/** Once the broker is back: what became of those whose answer was lost. */
async function lookAgain(): Promise<void> {
  const lost = run.peek();
  if (lost?.state !== "away") return;
  const { connection, left, unsure } = lost;
  for (const delegation of left.filter(({ id }) => unsure.has(id))) {
    try {
      const result = await resultOf(connection, delegation);
      if (!isCurrent(connection) || run.peek()?.state !== "away") return;
      if (result) finish(delegation, result);
      else settleAsOpen(delegation);
    } catch (error) {
      // If it is away again, its next return looks.
      checkSession(error);
    }
  }
}

/** Null: it is as it was. */
async function resultOf({ delegator }: Connection, { id }: Delegation): Promise<Delegation | null> {
  const now = await delegator.get(id);
  if (run.peek()?.act === "cancel") return now.state === "canceled" ? now : null;
  if (now.redriven_as === null) return null;
  try {
    return await delegator.get(now.redriven_as);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function settleAsOpen({ id }: Delegation): void {
  change({ unsure: new Set([...(run.peek()?.unsure ?? [])].filter((one) => one !== id)) });
}

effect(() => {
  const { value } = run;
  // It belongs to the session in which it began.
  if (value && session.value?.connection !== value.connection) run.value = null;
});

effect(() => {
  if (lostSince.value === null) untracked(() => void lookAgain());
});
