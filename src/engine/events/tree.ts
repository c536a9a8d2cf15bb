/**
 * The events of a tree: what happens to a delegation and to everything delegated under it, without contents. Limit: only
 * a whole tree can be watched, because an event names its root alone, and the feed of the root's delegator has them all.
 */
import type { Positions } from "../../events/cursor.ts";
import { type Entry, rootOf } from "../../events/entry.ts";
import type { Source } from "../../events/feed.ts";
import type { ReplayPace } from "../../events/replay-pace.ts";
import { type Watched, watch } from "../../events/watch.ts";
import { MOVES, type Move } from "../../lifecycle/states.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { delegationIdSchema } from "../../schema/values.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { isParty, type Principal, seesAll } from "../access/access.ts";
import type { BulkReads, Reads } from "../broker.ts";
import { read } from "../delegations/read.ts";
import { type Streams, sourcesOf } from "./subscribe.ts";

const rows: readonly Move[] = Object.values(MOVES);
const changing = new Set(rows.filter(({ to }) => to.length > 0).map(({ status }) => status));
/** Statuses of events after which the state is the same. */
const UNCHANGING: ReadonlySet<string> = new Set(
  rows.flatMap(({ status }) => (status === undefined || changing.has(status) ? [] : [status])),
);

/** The root of a tree. Throws if the caller may not read it, or if it has a parent. */
export async function readRoot(broker: Reads, principal: Principal, id: string): Promise<StoredDelegation> {
  const record = await read(broker, principal, id);
  const [root] = record.get("ancestors");
  if (root === undefined) return record;
  throw new ErrandError("invalid_request", "Only a whole tree can be watched, from its root.", {
    details: { issues: [{ path: "id", reason: `its root is ${root[0]}` }] },
    recovery: `Watch ${root[0]}, or this delegation alone at /v1/delegations/${id}/events.`,
  });
}

const parentIn = ({ type, more }: Entry): string | undefined => {
  if (type !== "DELEGATION_SENT") return undefined;
  const { parent_id }: Readonly<Record<string, unknown>> = JSON.parse(`{${more}}`);
  return delegationIdSchema.safeParse(parent_id).data;
};

/** The event as a `DELEGATION_NODE`. */
function toNode(entry: Entry): Entry {
  const parent_id = parentIn(entry);
  const members = { root_id: rootOf(entry), ...(parent_id !== undefined && { parent_id }) };
  return {
    ...entry,
    type: "DELEGATION_NODE",
    status: "",
    more: JSON.stringify(members).slice(1, -1),
    refs: "",
  };
}

/** The events of the tree after the positions, as far as the principal may see them. It does not end. */
export async function* treeEvents(
  broker: Streams & BulkReads & Reads,
  principal: Principal,
  root: StoredDelegation,
  after: Positions,
  signal: StopSignal,
  pace?: ReplayPace,
): AsyncGenerator<Watched, void, undefined> {
  const leads = seesAll(principal) || root.get("delegator") === principal.text;
  const source: Source = {
    kind: "tree",
    root: root.id,
    principal: leads ? root.get("delegator") : principal.text,
  };
  const since = principal.kind === "agent" ? await broker.agents.since(principal.name) : 0;
  const shows = (entry: Entry) =>
    rootOf(entry) === root.id &&
    !UNCHANGING.has(entry.status) &&
    entry.created_at >= since &&
    (leads || isParty(principal, entry));
  const watched = watch({
    ...sourcesOf(broker, broker.bulk),
    source,
    after,
    signal,
    shows,
    loadsBodies: false,
    ...(pace && { pace }),
  });
  for await (const event of watched) {
    yield "entry" in event ? { ...event, entry: toNode(event.entry) } : event;
  }
}
