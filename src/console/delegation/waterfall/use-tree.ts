/** A delegation with those above and under it, kept current by the events. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Delegation } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import type { Connection } from "../../data/connection.ts";
import { onEvents } from "../../data/stream.ts";
import { checkSession, session } from "../../session/session.ts";
import { useLoaded } from "../../ui/use-loaded.ts";
import { type Node, nodeAfter, toNode } from "./node.ts";
import { MAX_NODES, readAbove, readBelow } from "./read-tree.ts";

type Nodes = ReadonlyMap<string, Node>;

export interface Tree {
  /** From the root to the parent, as far as the reader may see. */
  readonly above: readonly Node[];
  /** The delegation and those under it, by id; while they are read, those that were found so far. */
  readonly nodes: Nodes;
  /** The first one above that is gone or hidden; null: there is none. */
  readonly missing: string | null;
  readonly isCut: boolean;
  readonly isRead: boolean;
  readonly error: unknown;
}

/** `onMoves` gets the events of all that are shown. */
export function useTree(of: Delegation, onMoves: (events: readonly DelegationEvent[]) => void): Tree {
  const nodes = useSignal<Nodes>(new Map());
  const aboveIds = useSignal<readonly string[]>([]);
  const { id, parent_id } = of;
  const add = (found: readonly Node[]) => {
    if (found.length === 0) return;
    const next = new Map(nodes.peek());
    for (const node of found) if ((next.get(node.id)?.version ?? 0) <= node.version) next.set(node.id, node);
    nodes.value = next;
  };
  const { value, error, reload } = useLoaded(id, async ({ delegator, pages }, signal) => {
    const { above, missing } = await readAbove(delegator, parent_id, signal);
    aboveIds.value = above.map((one) => one.id);
    add(above.map(toNode));
    const isCut = await readBelow(pages, id, signal, (found) => add(found.map(toNode)));
    return { missing, isCut };
  });
  const known = nodes.value;
  const { above, below } = useMemo(() => {
    const ids = new Set(aboveIds.value);
    const found = new Map([...known].filter(([one]) => !ids.has(one)));
    found.set(id, toNode(of));
    return { above: [...ids].flatMap((one) => known.get(one) ?? []), below: found };
  }, [known, aboveIds.value, of]);
  const latest = useRef({ reload, onMoves, below });
  latest.current = { reload, onMoves, below };
  useEffect(() => {
    const abort = new AbortController();
    const underWay = new Set<string>();
    const again = new Set<string>();
    /** Many events of one delegation cause one reading, and one more after it. */
    const readOnce = async (connection: Connection, id: string) => {
      if (underWay.has(id)) return void again.add(id);
      underWay.add(id);
      do {
        again.delete(id);
        await readOne(connection, id, abort.signal, add);
      } while (again.has(id) && !abort.signal.aborted);
      underWay.delete(id);
    };
    const quiet = onEvents((events) => {
      const connection = session.peek()?.connection;
      if (!connection) return;
      if (events === null) return latest.current.reload();
      const { changed, unclear } = apply(nodes.peek(), latest.current.below, events);
      if (changed.length > 0) add(changed);
      for (const one of unclear) void readOnce(connection, one);
      latest.current.onMoves(events);
    });
    return () => {
      quiet();
      abort.abort();
    };
  }, []);
  return {
    ...{ above, nodes: below, error },
    missing: value?.missing ?? null,
    isCut: value?.isCut ?? false,
    isRead: value !== null,
  };
}

/**
 * The known delegations as they are after the events, and the ids of those to read: new ones, and those of which the
 * events do not say enough.
 */
function apply(known: Nodes, below: Nodes, events: readonly DelegationEvent[]) {
  const changed = new Map<string, Node>();
  const unclear = new Set<string>();
  for (const event of events) {
    const { delegation_id: id } = event;
    const parent_id = event.type === "DELEGATION_SENT" ? event.parent_id : undefined;
    const node = changed.get(id) ?? known.get(id);
    if (node === undefined) {
      const isUnder = parent_id !== undefined && (below.has(parent_id) || unclear.has(parent_id));
      if (isUnder && below.size < MAX_NODES) unclear.add(id);
    } else if (event.seq > node.version) {
      const after = nodeAfter(node, event);
      if (after) changed.set(id, after);
      else unclear.add(id);
    }
  }
  return { changed: [...changed.values()], unclear };
}

async function readOne(
  { delegator }: Connection,
  id: string,
  signal: AbortSignal,
  add: (found: readonly Node[]) => void,
): Promise<void> {
  try {
    add([toNode(await delegator.get(id, { signal }))]);
  } catch (error) {
    // It may be erased again, or hidden; the next event tries again.
    if (!signal.aborted) checkSession(error);
  }
}
