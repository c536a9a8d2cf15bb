/** The moves in the rows that are in view: read when a row is shown, then kept current by the events. */
import { type Signal, signal } from "@preact/signals";
import type { DelegationEvent } from "../../../schema/event.ts";
import type { Connection } from "../../data/connection.ts";
import { checkSession } from "../../session/session.ts";
import { eventPages } from "../read-events.ts";
import type { Node } from "./node.ts";

/** A delegation with more events is drawn without them, until it is selected. */
const MAX_EVENTS = 1_000;
const AT_ONCE = 2;

interface Log {
  /** Those that change a bar or a mark. */
  readonly shown: Signal<readonly DelegationEvent[]>;
  /** How many of its events are examined. */
  seq: number;
  after: string;
  wanted: number;
}

/** They say nothing that a row shows. */
const QUIET: readonly unknown[] = ["progress", "artifact", "message"];

export class RowEvents {
  readonly #logs = new Map<string, Log>();
  readonly #waiting = new Set<string>();
  readonly #connection: () => Connection | undefined;
  #running = 0;

  constructor(connection: () => Connection | undefined) {
    this.#connection = connection;
  }

  shown(id: string): Signal<readonly DelegationEvent[]> {
    return this.#logOf(id).shown;
  }

  /** Reads the events of a row up to its version. */
  want({ id, version }: Pick<Node, "id" | "version">): void {
    const log = this.#logOf(id);
    if (version > MAX_EVENTS || version <= Math.max(log.seq, log.wanted)) return;
    log.wanted = version;
    this.#waiting.add(id);
    void this.#read();
  }

  /** Takes the events that arrive, of rows that were read before. */
  add(events: readonly DelegationEvent[]): void {
    for (const event of events) {
      const log = this.#logs.get(event.delegation_id);
      if (log && log.seq > 0 && event.seq === log.seq + 1) take(log, [event]);
    }
  }

  #logOf(id: string): Log {
    const known = this.#logs.get(id);
    if (known) return known;
    const log = { shown: signal<readonly DelegationEvent[]>([]), seq: 0, after: "0", wanted: 0 };
    this.#logs.set(id, log);
    return log;
  }

  async #read(): Promise<void> {
    if (this.#running >= AT_ONCE) return;
    this.#running += 1;
    for (const id of this.#waiting) {
      this.#waiting.delete(id);
      await this.#readOne(id);
    }
    this.#running -= 1;
  }

  async #readOne(id: string): Promise<void> {
    const log = this.#logOf(id);
    const pages = this.#connection()?.pages;
    try {
      if (!pages || log.seq >= log.wanted) return;
      for await (const found of eventPages(pages, id, log)) {
        take(log, found);
        if (log.seq >= log.wanted) break;
      }
    } catch (error) {
      // The row is drawn without them, and reads them again when it changes.
      log.wanted = log.seq;
      checkSession(error);
    }
  }
}

function take(log: Log, events: readonly DelegationEvent[]): void {
  const news = events.filter(({ seq }) => seq > log.seq);
  log.seq = news.at(-1)?.seq ?? log.seq;
  const moves = news.filter(({ status }) => !QUIET.includes(status));
  if (moves.length > 0) log.shown.value = [...log.shown.peek(), ...moves];
}
