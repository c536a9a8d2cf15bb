import type { ComponentChildren } from "preact";
import { ErrandApiError } from "../../client/errors.ts";
import { type Nested, nest } from "../../client/tree.ts";
import { sumUsage, usageText } from "../../client/usage.ts";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { href, hrefOf } from "../app/route.ts";
import type { Connection } from "../data/connection.ts";
import { useSoonAfter } from "../data/use-soon-after.ts";
import { mayDelegate } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { PHASES, STATE_WORDS, taskText } from "../ui/words.ts";

/** At most this many delegations are read. */
const MAX = 200;
/** The shortest time between two readings. */
const PAUSE_MS = 1_000;

/** Whether the tree with these ids is different after the event. A report of progress changes nothing that it shows. */
const changesTree = (event: DelegationEvent, ids: ReadonlySet<unknown>): boolean =>
  (ids.has(event.delegation_id) && event.status !== "progress") || ids.has(event.parent_id);

/** Where the delegation belongs, and everything delegated under it, each below its parent, with the states. */
export function Tree({ delegation }: { readonly delegation: Delegation }) {
  const { id, parent_id } = delegation;
  const { value, error, reload } = useLoaded(id, (connection, signal) =>
    read(connection, delegation, signal),
  );
  const ids = new Set<unknown>([id, parent_id, ...(value?.found ?? []).map((one) => one.id)]);
  useSoonAfter((event) => changesTree(event, ids), reload, PAUSE_MS);
  if (error !== null) return <Problem error={error} />;
  if (value === null) return <p class="loading">Reading the tree …</p>;
  const { parent, found, isCut } = value;
  const root = nest(found, id);
  const used = found.length > 1 && !isCut ? sumUsage(found) : undefined;
  return (
    <>
      {parent && (
        <div class="tree tree-parent">
          <Line one={parent}>
            <span class="dim">a part of</span>
          </Line>
        </div>
      )}
      {parent_id !== null && !parent && (
        <p class="dim">Its parent …{parent_id.slice(-8)} was erased, or you may not see it.</p>
      )}
      {root && <Level class="tree" nodes={[root]} current={id} />}
      {used && <p class="dim">Together: {usageText(used)}</p>}
      {isCut && (
        <p class="dim">
          Only {MAX} are shown. To see all: errand list --tree {id}
        </p>
      )}
      {found.length === 1 && <NothingUnder delegation={delegation} />}
    </>
  );
}

interface LevelProps {
  readonly class?: string;
  readonly nodes: readonly Nested<Delegation>[];
  readonly current: string;
}

function Level({ nodes, current, class: name }: LevelProps) {
  return (
    <ul class={name}>
      {nodes.map(({ one, below, isOrphan }) => (
        <li key={one.id}>
          <Line one={one} isCurrent={one.id === current}>
            {isOrphan && <span class="dim">its parent is gone, or hidden from you</span>}
          </Line>
          {below.length > 0 && <Level nodes={below} current={current} />}
        </li>
      ))}
    </ul>
  );
}

interface LineProps {
  readonly one: Delegation;
  readonly isCurrent?: boolean;
  readonly children: ComponentChildren;
}

function Line({ one, isCurrent = false, children }: LineProps) {
  return (
    <a href={hrefOf(one.id)} aria-current={isCurrent ? "true" : undefined}>
      {children}
      <StateMark phase={PHASES[one.state]} />
      <b class="tree-agent">{one.target}</b>
      <span class="tree-task">
        <Said>{taskText(one)}</Said>
      </span>
      <small>{STATE_WORDS[one.state]}</small>
    </a>
  );
}

function NothingUnder({ delegation: { id, state } }: { readonly delegation: Delegation }) {
  if (isTerminal(state)) return <p class="dim">Nothing was delegated under it.</p>;
  return (
    <Empty title="Nothing is delegated under it" line={`errand delegate AGENT "TASK" --parent ${id}`}>
      Delegations that its agent, or somebody else, makes as parts of it appear here.
      {mayDelegate.value && (
        <>
          {" "}
          <a href={href("delegate", { parent: id })}>Delegate a part</a>, or from a terminal:
        </>
      )}
    </Empty>
  );
}

interface Found {
  /** Null if there is none, or none that can be seen. */
  readonly parent: Delegation | null;
  readonly found: readonly Delegation[];
  readonly isCut: boolean;
}

async function read({ delegator }: Connection, of: Delegation, signal: AbortSignal): Promise<Found> {
  const parent =
    of.parent_id === null ? null : await delegator.get(of.parent_id, { signal }).catch(nullIfGone);
  const found: Delegation[] = [];
  for await (const { delegation } of delegator.tree(of.id, { signal, pageSize: 50 })) {
    if (found.length >= MAX) return { parent, found, isCut: true };
    found.push(delegation);
  }
  return { parent, found, isCut: false };
}

function nullIfGone(error: unknown): null {
  if (error instanceof ErrandApiError && error.status === 404) return null;
  throw error;
}
