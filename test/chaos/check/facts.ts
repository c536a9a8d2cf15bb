/** Indexes of a history, built once, for the rules to read. */
import type { Call, FinalRead, History, StoredRecord } from "../history.ts";
import type { RowOf } from "../rows.ts";

/** A lease that was granted, with the time at which its holder received it. */
export interface Grant {
  readonly id: string;
  readonly lease: string;
  readonly fence: number;
  readonly granted_at: number;
  /** Of a wait for all children that has ended: how many of them had not. */
  readonly unended?: number | undefined;
  /** When the holder received it. */
  readonly known: number;
}

export interface Violation {
  readonly rule: string;
  readonly id: string;
  readonly what: string;
  /**
   * The time of the observation that contradicts the broker. If Redis may have lost what was acknowledged at that
   * time (see loss.ts), the observation is void and no violation; absent if no loss could explain it.
   */
  readonly at?: number;
}

export interface Facts {
  readonly history: History;
  readonly records: ReadonlyMap<string, StoredRecord>;
  readonly finals: ReadonlyMap<string, readonly FinalRead[]>;
  /** By delegation, in the order in which the holders received them. */
  readonly grants: ReadonlyMap<string, readonly Grant[]>;
  readonly calls: (op: string) => readonly Call[];
  /** By subscriber, in the order of arrival. */
  readonly sightings: ReadonlyMap<string, readonly RowOf<"event">[]>;
}

export function groupBy<T>(items: Iterable<T>, nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

export function toFacts(history: History): Facts {
  const byOp = groupBy(history.calls, ({ op }) => op);
  const grants: Grant[] = [];
  for (const call of byOp.get("lease") ?? []) {
    for (const grant of call.grants ?? []) grants.push({ ...grant, known: call.end });
  }
  grants.sort((a, b) => a.known - b.known);
  return {
    history,
    records: new Map(history.dump.records.map((record) => [record.id, record])),
    finals: groupBy(history.finals, ({ id }) => id),
    grants: groupBy(grants, ({ id }) => id),
    calls: (op) => byOp.get(op) ?? [],
    sightings: groupBy(history.events, ({ sub }) => sub),
  };
}
