/**
 * Reads the lines that a person types. A terminal is in raw mode meanwhile: a line that is not complete goes away with
 * its reader, and a secret is not echoed. Input that is no terminal is read line by line.
 */
import { createInterface, type Interface, type Key } from "node:readline";
import { type Readable, Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { ReadStream } from "node:tty";
import { Interrupted, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { write } from "../show/output.ts";

/** How many turns of the event loop to wait. Input that the terminal already has is read within two. */
const TURNS = 3;
const CTRL_C = 3;

export class LineReader {
  /** Rejects at Ctrl-C, which sends no signal in raw mode. */
  readonly interrupted: Promise<never>;
  readonly #host: CliHost;
  readonly #isHidden: boolean;
  readonly #isEchoed: boolean;
  readonly #reader: Interface;
  readonly #lines: AsyncIterator<string>;
  /** Lines that arrived and were not returned. */
  #waiting = 0;
  #isClosed = false;
  #hasRead = false;
  readonly #paste: PasteWatch | undefined;

  private constructor(host: CliHost, isHidden: boolean) {
    const { stdin: input, stderr, isTty } = host;
    this.#host = host;
    this.#isHidden = isHidden;
    this.#isEchoed = !isHidden && input instanceof ReadStream && isTty.stderr;
    const output = this.#isEchoed ? stderr : new Writable({ write: (_chunk, _encoding, done) => done() });
    const terminal = isHidden || this.#isEchoed;
    this.#reader = createInterface({ input, output, terminal, historySize: 0 });
    this.#lines = this.#reader[Symbol.asyncIterator]();
    this.#reader.on("line", () => {
      this.#waiting += 1;
    });
    this.#reader.once("close", () => {
      this.#isClosed = true;
    });
    this.interrupted = new Promise<never>((_, reject) => {
      this.#reader.once("SIGINT", () => reject(new Interrupted("SIGINT")));
    });
    // Ctrl-C may come while nothing awaits the promise.
    this.interrupted.catch(() => undefined);
    this.#paste = isHidden && input instanceof ReadStream ? new PasteWatch(input, stderr) : undefined;
  }

  /** Drops what was typed before, because it was meant for something else. */
  static async open(host: CliHost, { isHidden = false } = {}): Promise<LineReader> {
    await dropTyped(host.stdin);
    return new LineReader(host, isHidden);
  }

  /** Whether the next line says yes; every other line, and the end of the input, says no. */
  async agrees(question: string): Promise<boolean> {
    return /^\s*y(es)?\s*$/i.test((await this.next(`${question} [y/N] `)) ?? "");
  }

  /** The next line; undefined at the end of the input. Throws at Ctrl-C, and if a secret has several lines. */
  async next(prompt: string): Promise<string | undefined> {
    if (this.#isClosed && this.#waiting === 0) return undefined;
    if (this.#isEchoed) {
      this.#reader.setPrompt(prompt);
      this.#reader.prompt();
    } else await write(this.#host.stderr, prompt);
    const { done, value } = await Promise.race([this.#lines.next(), this.interrupted]);
    if (this.#isHidden || done) await write(this.#host.stderr, "\n");
    if (done) return undefined;
    this.#waiting -= 1;
    if (this.#paste) await this.#requireOneLine(this.#paste);
    const isFirst = !this.#hasRead;
    this.#hasRead = true;
    return isFirst ? value.replace(/^\uFEFF/, "") : value;
  }

  close(): void {
    this.#paste?.close();
    this.#reader.close();
  }

  /** A part of a secret must not be sent as if it were all of it. */
  async #requireOneLine(paste: PasteWatch): Promise<void> {
    await Promise.race([paste.ended(), this.interrupted]);
    for (let turns = 0; turns < TURNS; turns += 1) await turn();
    if (this.#isClosed) return;
    if (this.#waiting === 0 && this.#reader.line === "") return;
    throw usageError(
      "the answer has several lines, and the prompt takes one",
      "Nothing was sent. Pass a secret of several lines on stdin: 'errand answer <id> - < <path>'.",
    );
  }
}

/** Asks the terminal to mark what is pasted, because its lines may arrive one by one. */
class PasteWatch {
  readonly #input: ReadStream;
  readonly #output: Writable;
  #ended: Promise<void> = Promise.resolve();
  #end: () => void = () => undefined;

  constructor(input: ReadStream, output: Writable) {
    this.#input = input;
    this.#output = output;
    input.on("keypress", this.#press);
    output.write("\u001b[?2004h");
  }

  /** Resolves when no paste is incomplete. */
  ended(): Promise<void> {
    return this.#ended;
  }

  close(): void {
    this.#end();
    this.#input.off("keypress", this.#press);
    this.#output.write("\u001b[?2004l");
  }

  readonly #press = (_text: string | undefined, { name }: Key): void => {
    if (name === "paste-end") this.#end();
    if (name !== "paste-start") return;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  };
}

/** Reads and drops the input that the terminal already has. In raw mode, that includes an incomplete line. */
async function dropTyped(input: Readable): Promise<void> {
  if (!(input instanceof ReadStream)) return;
  let isInterrupted = false;
  const drop = (bytes: Buffer | string) => {
    isInterrupted ||= Buffer.from(bytes).includes(CTRL_C);
  };
  input.setRawMode(true);
  input.on("data", drop).resume();
  for (let turns = 0; turns < TURNS; turns += 1) await turn();
  input.off("data", drop).pause();
  input.setRawMode(false);
  if (isInterrupted) throw new Interrupted("SIGINT");
}
