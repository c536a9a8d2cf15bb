/**
 * Appends a process's part of the history, synchronously: what was not written before a call was not called.
 * Limit: one process, one file; a process started again goes on in the file of the one before.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { type Facts, nowMs, type Phase, type Row, type RowOf } from "./rows.ts";

/** How a call ended: `ok` with its facts, `fail` it surely did not happen, `info` it may have. */
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
    // The process before may have died within a line.
    writeSync(this.#fd, "\n");
  }

  note(row: Bare<Row>): void {
    writeSync(this.#fd, `${JSON.stringify({ t: nowMs(), proc: this.#proc, ...row })}\n`);
  }

  /** Records a call before and after. What `send` throws is a defect of the harness. */
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
