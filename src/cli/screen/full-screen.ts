/**
 * A view that fills the terminal: the alternate screen, raw keys, a new drawing after a change of size. However the view
 * ends, the terminal is as it was before. Limit: uses `process` directly, because signals are global.
 */
import { emitKeypressEvents, type Key as ReadlineKey } from "node:readline";
import { ReadStream } from "node:tty";
import { Interrupted } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { interruptible } from "../signals.ts";
import { type Key, KeyDecoder } from "./keys.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Frame {
  /** From the top; no line is wider than the screen. */
  readonly lines: readonly string[];
  /** Where the cursor is shown, counted from 0; without it, the cursor is hidden. */
  readonly cursor?: { readonly row: number; readonly column: number } | undefined;
}

export interface View {
  readonly draw: (size: Size) => Frame;
  /** Returns true if the key ends the view. */
  readonly press: (key: Key) => boolean;
  /** Runs beside the view, and calls `redraw` when what it shows has changed. A failure ends the view. */
  readonly run: (redraw: () => void, signal: AbortSignal) => Promise<void>;
}

/** Alternate screen, no automatic line breaks, pasted text in brackets. */
const ENTER = "\u001b[?1049h\u001b[?7l\u001b[?2004h";
const LEAVE = "\u001b[?2004l\u001b[?7h\u001b[?25h\u001b[?1049l";
const CLEAR = "\u001b[2J";
const HIDE_CURSOR = "\u001b[?25l";
/** Ages and times left change each second. */
const TICK_MS = 1000;
const RESUME_MS = 50;

/** Whether a full-screen view is possible. */
export const hasScreen = ({ isTty, childEnv }: CliHost): boolean =>
  isTty.stdin && isTty.stdout && childEnv.TERM !== "dumb";

/** Shows the view until a key ends it. Throws Interrupted after Ctrl-C or a signal, and what `run` throws. */
export async function fullScreen(host: CliHost, view: View): Promise<void> {
  await interruptible(async (signal) => {
    const screen = new Screen(host, view);
    const work = new AbortController();
    try {
      await Promise.race([
        screen.open(),
        rejection(signal),
        view.run(() => screen.redraw(), work.signal).then(() => new Promise<never>(() => undefined)),
      ]);
    } finally {
      screen.close();
      work.abort();
    }
  });
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

class Screen {
  readonly #host: CliHost;
  readonly #view: View;
  readonly #decoder = new KeyDecoder();
  #isOpen = false;
  #shown: string[] = [];
  #drawing: "no" | "now" | "again" = "no";
  #tick: ReturnType<typeof setInterval> | undefined;
  #resuming: ReturnType<typeof setTimeout> | undefined;
  #end: (error?: unknown) => void = () => undefined;

  constructor(host: CliHost, view: View) {
    this.#host = host;
    this.#view = view;
  }

  /** Resolves when a key ends the view, or the terminal has gone. */
  open(): Promise<void> {
    const { stdin, stdout } = this.#host;
    return new Promise((resolve, reject) => {
      this.#end = (error) => (error === undefined ? resolve() : reject(error));
      emitKeypressEvents(stdin);
      stdin.on("keypress", this.#press);
      stdin.on("end", resolve).on("error", resolve);
      stdout.on("resize", this.#resized);
      // An error that nothing catches ends the process without `close`.
      process.on("exit", this.#leave);
      this.#enter();
    });
  }

  close(): void {
    const { stdin, stdout } = this.#host;
    stdin.off("keypress", this.#press);
    stdout.off("resize", this.#resized);
    process.off("exit", this.#leave);
    clearTimeout(this.#resuming);
    this.#leave();
    stdin.pause();
  }

  readonly #enter = (): void => {
    this.#isOpen = true;
    this.#setRaw(true);
    this.#host.stdin.resume();
    this.#host.stdout.write(ENTER);
    this.#tick = setInterval(() => this.redraw(), TICK_MS);
    this.#resized();
  };

  readonly #leave = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#tick);
    this.#host.stdout.write(LEAVE);
    this.#setRaw(false);
  };

  #setRaw(isRaw: boolean): void {
    const { stdin } = this.#host;
    if (stdin instanceof ReadStream) stdin.setRawMode(isRaw);
  }

  readonly #press = (text: string | undefined, pressed: ReadlineKey): void => {
    try {
      for (const key of this.#decoder.decode(text, pressed)) this.#take(key);
    } catch (error) {
      this.#end(error);
    }
  };

  #take(key: Key): void {
    if (key.name === "ctrl+c") this.#end(new Interrupted("SIGINT"));
    else if (key.name === "ctrl+z") this.#suspend();
    else if (key.name === "ctrl+l") this.#resized();
    else if (this.#view.press(key)) this.#end();
    else this.redraw();
  }

  /**
   * In raw mode, Ctrl-Z sends no signal. The timer fires when the process continues; without a shell that could continue
   * it, the system does not stop it.
   */
  #suspend(): void {
    this.#leave();
    process.kill(process.pid, "SIGTSTP");
    this.#resuming = setTimeout(this.#enter, RESUME_MS);
  }

  readonly #resized = (): void => {
    if (!this.#isOpen) return;
    this.#shown = [];
    this.#host.stdout.write(CLEAR);
    this.redraw();
  };

  /** Draws once the terminal has taken the drawing before. */
  redraw(): void {
    if (!this.#isOpen) return;
    if (this.#drawing !== "no") {
      this.#drawing = "again";
      return;
    }
    this.#drawing = "now";
    try {
      this.#host.stdout.write(this.#changes(), () => {
        const again = this.#drawing === "again";
        this.#drawing = "no";
        if (again) this.redraw();
      });
    } catch (error) {
      this.#end(error);
    }
  }

  /** Only lines that changed are written, so that nothing flickers. */
  #changes(): string {
    const size = sizeOf(this.#host);
    const { lines, cursor } = this.#view.draw(size);
    let changes = HIDE_CURSOR;
    for (let row = 0; row < size.rows; row += 1) {
      const line = lines[row] ?? "";
      if (this.#shown[row] !== line) changes += `\u001b[${row + 1};1H\u001b[2K${line}`;
      this.#shown[row] = line;
    }
    if (!cursor || cursor.row >= size.rows) return changes;
    return `${changes}\u001b[${cursor.row + 1};${cursor.column + 1}H\u001b[?25h`;
  }
}

function sizeOf({ stdout }: CliHost): Size {
  const columns = "columns" in stdout ? Number(stdout.columns) : 0;
  const rows = "rows" in stdout ? Number(stdout.rows) : 0;
  return { columns: columns || 80, rows: rows || 24 };
}
