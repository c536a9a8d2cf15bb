/** The data of a run that the checker reads. Read once, at the end; nothing here judges. */
import { readFileSync } from "node:fs";
import { type Facts, type Row, type RowOf, rowSchema } from "./rows.ts";

/** A call with its begin and end; without an answer its phase is `info`. */
export interface Call extends Facts {
  readonly proc: string;
  readonly op: string;
  readonly start: number;
  /** Infinity if no answer arrived. */
  readonly end: number;
  readonly result: "ok" | "fail" | "info";
}

/** A stored event, without its cursor. */
export interface StoredEvent {
  readonly seq: number;
  readonly type: string;
  readonly status: string;
  readonly state: string;
  readonly hash: string;
  /** By Redis' clock, ms. */
  readonly at?: number;
  readonly attempt?: number | undefined;
  /** When the lease expires, if the event says so, ms. */
  readonly expires?: number | undefined;
  readonly asked?: AskedQuestion | undefined;
  readonly answer?: ShownAnswer | undefined;
}

/** A question, as the event `interrupted` shows it. */
export interface AskedQuestion {
  readonly id: string;
  readonly kind: string;
  /** Of its requests that propose an action. */
  readonly actions: readonly AskedAction[];
}
export interface AskedAction {
  readonly request: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** An answer or a vote, as its event shows it. */
export interface ShownAnswer {
  /** The question. */
  readonly id: string;
  readonly by: string;
  readonly via: string;
  readonly requests: readonly {
    readonly request: string;
    readonly decision?: string | undefined;
    readonly rule?: string | undefined;
    /** What it changed, as JSON; empty: nothing. */
    readonly changes: string;
  }[];
  /** Who approved, in order; absent: one answer is enough. */
  readonly votes?: readonly string[] | undefined;
  readonly voided?: readonly string[] | undefined;
}

/** A rule as the broker lists it at the end. */
export interface FinalRule {
  readonly id: string;
  readonly by: string;
  readonly agent: string;
  readonly action: string;
  readonly arguments: readonly {
    readonly name?: string | undefined;
    readonly minimum?: number | undefined;
    readonly maximum?: number | undefined;
  }[];
  readonly only_these_arguments: boolean;
  readonly decision: string;
  readonly uses: number;
  readonly max_uses: number | null;
  /** By Redis' clock, ms. */
  readonly created: number;
  readonly expires: number | null;
  readonly revoked: number | null;
}

/** One delegation as one gateway shows it at the end. */
export interface FinalRead {
  readonly gateway: string;
  readonly id: string;
  readonly found: boolean;
  readonly state: string;
  readonly version: number;
  readonly key: string;
  readonly reply: string;
  /** Hash of the whole answer. */
  readonly hash: string;
  /** The code of its error. */
  readonly error?: string | undefined;
  /** What its own attempts have used, in tokens. */
  readonly tokens?: number | undefined;
  /** What its tree may use, and has used. */
  readonly budget?: FinalBudget | undefined;
}

interface FinalBudget {
  readonly limit?: Amounts | undefined;
  readonly used: { readonly tokens: number; readonly attempts: number };
  readonly exceeded?: true | undefined;
}
interface Amounts {
  readonly tokens?: number | undefined;
  readonly attempts?: number | undefined;
}

/** A record in Redis. */
export interface StoredRecord {
  readonly id: string;
  readonly state: string;
  readonly version: number;
  readonly ticket: number;
  readonly fence: number;
  readonly target: string;
  readonly delegator: string;
  /** From the task's text. */
  readonly key: string;
  readonly context?: string | undefined;
  /** The delegation that this one is a child of. */
  readonly parent?: string | undefined;
  /** The one before it in the line of its conversation. */
  readonly behind?: string | undefined;
  /** It has not reported to its parent yet what its tree has used. */
  readonly spends?: boolean | undefined;
}

/** Records and tickets at one moment. */
export interface Dump {
  readonly records: readonly StoredRecord[];
  /** `<delegation id>.<n>`, from every agent's queue. */
  readonly tickets: readonly string[];
}

export interface LogLine {
  readonly source: string;
  readonly line: string;
}

export interface History extends Recorded {
  readonly fsync: "always" | "everysec";
  /** Stored events by delegation, read at the end. */
  readonly stored: ReadonlyMap<string, readonly StoredEvent[]>;
  readonly finals: readonly FinalRead[];
  readonly rules: readonly FinalRule[];
  /** While some work waits on purpose, and at the end. */
  readonly waiting: Dump;
  readonly dump: Dump;
  readonly logs: readonly LogLine[];
  /** Texts that no log may contain. */
  readonly secrets: readonly string[];
  /** Gateways that ended by themselves, and ends that were not clean. */
  readonly deaths: readonly string[];
}

/** A history without calls. */
export function emptyHistory() {
  return {
    ...{
      calls: [],
      events: [],
      subscribes: [],
      resets: [],
      deliveries: [],
      notices: [],
      a2a: [],
      agui: [],
      faults: [],
      outages: [],
    },
    ...{
      fsync: "always" as const,
      stored: new Map<string, never[]>(),
      finals: [],
      rules: [],
      logs: [],
      secrets: [],
      deaths: [],
    },
    ...{ waiting: { records: [], tickets: [] }, dump: { records: [], tickets: [] } },
  };
}

/** The rows that the processes recorded. */
export interface Recorded {
  readonly calls: readonly Call[];
  readonly events: readonly RowOf<"event">[];
  readonly subscribes: readonly RowOf<"subscribe">[];
  readonly resets: readonly RowOf<"reset">[];
  readonly deliveries: readonly RowOf<"delivery">[];
  readonly notices: readonly RowOf<"notice">[];
  readonly a2a: readonly RowOf<"a2a">[];
  readonly agui: readonly RowOf<"agui">[];
  readonly faults: readonly RowOf<"fault">[];
  readonly outages: readonly RowOf<"outage">[];
}

/** Joins the rows of all processes. */
export function assemble(rows: Iterable<Row>): Recorded {
  const open = new Map<string, Call>();
  const calls: Call[] = [];
  const events: RowOf<"event">[] = [];
  const subscribes: RowOf<"subscribe">[] = [];
  const resets: RowOf<"reset">[] = [];
  const deliveries: RowOf<"delivery">[] = [];
  const notices: RowOf<"notice">[] = [];
  const a2a: RowOf<"a2a">[] = [];
  const agui: RowOf<"agui">[] = [];
  const faults: RowOf<"fault">[] = [];
  const outages: RowOf<"outage">[] = [];
  for (const row of rows) {
    if (row.row === "event") events.push(row);
    else if (row.row === "subscribe") subscribes.push(row);
    else if (row.row === "reset") resets.push(row);
    else if (row.row === "delivery") deliveries.push(row);
    else if (row.row === "notice") notices.push(row);
    else if (row.row === "a2a") a2a.push(row);
    else if (row.row === "agui") agui.push(row);
    else if (row.row === "fault") faults.push(row);
    else if (row.row === "outage") outages.push(row);
    else {
      const { t, row: _row, n, phase, proc, op, ...facts } = row;
      const name = `${proc}/${n}`;
      const known = open.get(name);
      if (phase === "invoke") {
        const call: Call = { ...facts, proc, op, start: t, end: Number.POSITIVE_INFINITY, result: "info" };
        open.set(name, call);
        calls.push(call);
      } else if (known) {
        Object.assign(known, facts, { end: t, result: phase });
        open.delete(name);
      }
    }
  }
  return { calls, events, subscribes, resets, deliveries, notices, a2a, agui, faults, outages };
}

/** The rows of a file, without an incomplete last line of a killed process. */
export function* readRows(path: string): Generator<Row> {
  for (const line of readFileSync(path, "utf8").split("\n")) {
    if (line === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      continue;
    }
    yield rowSchema.parse(value);
  }
}
