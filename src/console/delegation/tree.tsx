import type { Branch } from "../../client/tree.ts";
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

/** The delegation and everything delegated under it, with the states. */
export function Tree({ delegation }: { readonly delegation: Delegation }) {
  const { id } = delegation;
  const { value, error, reload } = useLoaded(id, (connection, signal) => read(connection, id, signal));
  const ids = new Set<unknown>([id, ...(value ?? []).map((branch) => branch.delegation.id)]);
  useSoonAfter((event) => changesTree(event, ids), reload, PAUSE_MS);
  if (error !== null) return <Problem error={error} />;
  if (value === null) return <p class="loading">Reading the tree …</p>;
  return (
    <>
      <ul class="tree">
        {value.map(({ delegation: one, depth }) => (
          <li key={one.id} style={{ paddingInlineStart: `${depth * 20}px` }}>
            <a href={hrefOf(one.id)} aria-current={one.id === id ? "true" : undefined}>
              <StateMark phase={PHASES[one.state]} />
              <b>{one.target}</b>
              <Said>{taskText(one)}</Said>
              <small>{STATE_WORDS[one.state]}</small>
            </a>
          </li>
        ))}
      </ul>
      {value.length === 1 && <NothingUnder delegation={delegation} />}
    </>
  );
}

function NothingUnder({ delegation: { id, state } }: { readonly delegation: Delegation }) {
  if (isTerminal(state)) return <p class="dim">Nothing was delegated under it.</p>;
  return (
    <Empty title="Nothing is delegated under it" line={`npx errand delegate AGENT "TASK" --parent ${id}`}>
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

async function read({ delegator }: Connection, id: string, signal: AbortSignal): Promise<readonly Branch[]> {
  const found: Branch[] = [];
  for await (const branch of delegator.tree(id, { signal, pageSize: 50 })) {
    found.push(branch);
    if (found.length >= MAX) break;
  }
  return found;
}
