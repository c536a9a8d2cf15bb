/**
 * Appends a process's part of the history, synchronously: a call is made only after it was recorded. One process
 * writes one file; a restarted process continues the file of its predecessor.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { type Facts, nowMs, type Phase, type Row, type RowOf } from "./rows.ts";

/** How a call ended: `ok` with its facts; `fail`, it certainly did not happen; `info`, it may have happened. */
export interface Ending extends Facts {
  readonly phase: Exclude<Phase, "invoke">;
}

type Bare<R> = R extends Row ? Omit<R, "t" | "proc"> : never;

export class Recorder {
  readonly #fd: number;
  readonly #proc: string;
  readonly #life = process.pid.toString(36) + Math.floor(nowMs()).toString(36);
  #calls = 0;

  constructor(path: string, proc: string) {
    this.#proc = proc;
    this.#fd = openSync(path, "a");
    // The predecessor may have died within a line.
    writeSync(this.#fd, "\n");
  }

  note(row: Bare<Row>): void {
    writeSync(this.#fd, `${JSON.stringify({ t: nowMs(), proc: this.#proc, ...row })}\n`);
  }

  /** Records a call before and after. An error that `send` throws is a defect of the harness. */
  async call<T extends Ending>(op: string, facts: Facts, send: () => Promise<T>): Promise<T> {
    this.#calls += 1;
    const n = `${this.#life}.${this.#calls}`;
    const row = (phase: Phase, more: Facts): Bare<RowOf<"call">> => ({ ...more, row: "call", n, op, phase });
    this.note(row("invoke", facts));
    const ending = await send();
    this.note(row(ending.phase, ending));
    return ending;
  }

  close(): void {
    closeSync(this.#fd);
  }
}
