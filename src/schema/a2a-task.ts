/** Maps A2A's task states to ours and back. */
import type { State } from "./delegation.ts";

interface A2aState {
  /** Its number in the protocol's enum, which ProtoJSON accepts instead of the name. */
  readonly number: number;
  /** Its name in A2A 0.3. */
  readonly v03: string;
  /** Null: unspecified, so it is never accepted as a reply. */
  readonly state: State | null;
  /** How the broker treats the state when an agent reports it. */
  readonly means: "progress" | "reply" | "interrupt" | "canceled" | null;
}

export const A2A_STATES = {
  TASK_STATE_UNSPECIFIED: { number: 0, v03: "unknown", state: null, means: null },
  TASK_STATE_SUBMITTED: { number: 1, v03: "submitted", state: "submitted", means: "progress" },
  TASK_STATE_WORKING: { number: 2, v03: "working", state: "working", means: "progress" },
  TASK_STATE_COMPLETED: { number: 3, v03: "completed", state: "completed", means: "reply" },
  TASK_STATE_FAILED: { number: 4, v03: "failed", state: "failed", means: "reply" },
  TASK_STATE_CANCELED: { number: 5, v03: "canceled", state: "canceled", means: "canceled" },
  TASK_STATE_INPUT_REQUIRED: {
    number: 6,
    v03: "input-required",
    state: "input_required",
    means: "interrupt",
  },
  TASK_STATE_REJECTED: { number: 7, v03: "rejected", state: "rejected", means: "reply" },
  TASK_STATE_AUTH_REQUIRED: { number: 8, v03: "auth-required", state: "auth_required", means: "interrupt" },
} as const satisfies Record<string, A2aState>;

export type A2aStateName = keyof typeof A2A_STATES;
type Row = (typeof A2A_STATES)[A2aStateName];
/** A state that an agent may report. */
export type KnownA2aState = Exclude<Row, { readonly means: null }>;

const isName = (name: string): name is A2aStateName => Object.hasOwn(A2A_STATES, name);
const NAMES: readonly A2aStateName[] = Object.keys(A2A_STATES).filter(isName);

/** The row of a state in the spelling of any A2A version; undefined for an absent, unknown or unspecified one. */
export function fromA2aState(written: unknown): KnownA2aState | undefined {
  for (const name of NAMES) {
    const row = A2A_STATES[name];
    if (row.means === null) continue;
    if (written === name || written === row.v03 || written === row.number) return row;
  }
  return undefined;
}

/** A2A has no word for a task that waits for parts of it. */
const asTask = (state: State): State => (state === "awaiting_children" ? "working" : state);

/** Our states that are this one in A2A. */
export const statesOf = (state: State): readonly State[] =>
  state === "working" ? ["working", "awaiting_children"] : [state];

/** The A2A 1.0 name of our state; the row has the other spellings. */
export function toA2aState(state: State): A2aStateName {
  const found = NAMES.find((name) => A2A_STATES[name].state === asTask(state));
  if (found === undefined) throw new TypeError(`A2A_STATES lacks a row for ${state}`);
  return found;
}
