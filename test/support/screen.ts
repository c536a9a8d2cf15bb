/**
 * The program on a real pseudo-terminal, and what its screen shows. Python has the pseudo-terminal, because Node has none.
 * Limit: of the sequences that move the cursor it knows those that full-screen.ts writes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { displayWidth } from "../../src/cli/show/text.ts";
import { PATH } from "./program.ts";

const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));

/** Reads commands as JSON lines; writes the output; at the end, writes to stderr whether the terminal echoes again. */
const PYTHON = `
import fcntl, json, os, pty, select, struct, sys, termios
def resize(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    resize(0, 80, 24)
    os.execvp(sys.argv[2], sys.argv[2:])
commands = b""
while True:
    ready, _, _ = select.select([0, fd], [], [])
    if fd in ready:
        try:
            out = os.read(fd, 65536)
        except OSError:
            out = b""
        if not out:
            break
        os.write(1, out)
    if 0 in ready:
        commands += os.read(0, 65536)
        *lines, commands = commands.split(b"\\n")
        for line in lines:
            command = json.loads(line)
            if "keys" in command: os.write(fd, command["keys"].encode())
            if "size" in command: resize(fd, *command["size"])
            if "signal" in command: os.kill(pid, command["signal"])
flags = termios.tcgetattr(fd)[3]
sys.stderr.write("echo" if flags & termios.ECHO and flags & termios.ICANON else "raw")
sys.stderr.flush()
status = os.waitpid(pid, 0)[1]
os._exit(os.waitstatus_to_exitcode(status) & 255)
`;

export interface Terminal {
  /** The rows of the screen without colors, or the text before and after the full-screen view. */
  readonly rows: () => readonly string[];
  readonly text: () => string;
  readonly type: (keys: string) => void;
  readonly resize: (columns: number, rows: number) => void;
  readonly kill: (signal: number) => void;
  /** Resolves when the program has ended. */
  readonly ended: () => Promise<{ readonly code: number; readonly isRestored: boolean }>;
}

export function openTerminal(args: readonly string[], env: Record<string, string>): Terminal {
  const child = spawn("python3", ["-c", PYTHON, "-", process.execPath, MAIN, ...args], {
    env: { PATH, TERM: "xterm-256color", ...env },
    stdio: "pipe",
  });
  const closed = once(child, "close");
  onTestFinished(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await closed;
  });
  const screen = new ScreenText();
  child.stdout.setEncoding("utf8").on("data", (text: string) => screen.write(text));
  let end = "";
  child.stderr.on("data", (bytes: Buffer) => {
    end += bytes.toString();
  });
  child.stdin.on("error", () => undefined);
  const command = (one: object) => child.stdin.write(`${JSON.stringify(one)}\n`);
  return {
    rows: () => screen.rows(),
    text: () => screen.rows().join("\n"),
    type: (keys) => command({ keys }),
    resize: (columns, rows) => {
      screen.resize(columns, rows);
      command({ size: [columns, rows] });
    },
    kill: (signal) => command({ signal }),
    ended: async () => {
      await closed;
      return { code: child.exitCode ?? -1, isRestored: end === "echo" && screen.isRestored };
    },
  };
}

/** Interprets what a program writes to a terminal. Throws if a line is wider than the screen. */
export class ScreenText {
  #columns: number;
  #rows: number;
  /** Null: the normal screen. */
  #cells: string[][] | null = null;
  #plain = "";
  #row = 0;
  #column = 0;
  #modes = new Map<string, boolean>();
  #rest = "";
  /** After a change of size, until the program draws again. */
  #isStale = false;

  constructor(columns = 80, rows = 24) {
    this.#columns = columns;
    this.#rows = rows;
  }

  /** What is on the screen before the program has drawn it again is unknown. */
  resize(columns: number, rows: number): void {
    this.#columns = columns;
    this.#rows = rows;
    this.#isStale = this.#cells !== null;
    if (this.#cells) this.#cells = [];
  }

  rows(): string[] {
    if (this.#cells === null) return this.#plain.split(/\r?\n/);
    return Array.from({ length: this.#rows }, (_, row) => (this.#cells?.[row] ?? []).join("").trimEnd());
  }

  /** Whether every mode that was changed is as it was. */
  get isRestored(): boolean {
    return [...this.#modes].every(([mode, isOn]) => isOn === (mode === "7" || mode === "25"));
  }

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is parsed
    const parts = (this.#rest + text).split(/(\u001b\[[0-9;?]*[A-Za-z])/);
    this.#rest = "";
    for (const [at, part] of parts.entries()) {
      const isLast = at === parts.length - 1;
      const partial = isLast ? part.lastIndexOf("\u001b") : -1;
      if (partial >= 0) this.#rest = part.slice(partial);
      const whole = partial >= 0 ? part.slice(0, partial) : part;
      if (at % 2 === 1) this.#control(whole);
      else this.#put(whole);
    }
  }

  #control(sequence: string): void {
    const [, parameters = "", letter] = /^.\[([0-9;?]*)(.)$/.exec(sequence) ?? [];
    const [first = 1, second = 1] = parameters.replace("?", "").split(";").map(Number);
    if (letter === "h" || letter === "l") this.#mode(parameters.slice(1), letter === "h");
    if (letter === "H" && (first > this.#rows || second > this.#columns) && !this.#isStale)
      throw new Error(`the cursor is outside the screen: ${parameters}`);
    if (letter === "H") [this.#row, this.#column] = [first - 1, second - 1];
    if (letter === "K" && this.#cells) this.#cells[this.#row] = [];
    if (letter === "J" && this.#cells) {
      this.#cells = [];
      this.#isStale = false;
    }
  }

  #mode(mode: string, isOn: boolean): void {
    this.#modes.set(mode, isOn);
    if (mode === "1049") this.#cells = isOn ? [] : null;
  }

  #put(text: string): void {
    if (this.#cells === null) {
      this.#plain += text;
      return;
    }
    if (this.#isStale) return;
    this.#cells[this.#row] ??= [];
    for (const { segment } of new Intl.Segmenter().segment(text)) {
      const line = this.#cells[this.#row] ?? [];
      const width = displayWidth(segment);
      if (this.#column + width > this.#columns || this.#row >= this.#rows)
        throw new Error(`outside the screen of ${this.#columns}x${this.#rows}: ${line.join("")}${segment}`);
      line[this.#column] = segment;
      for (let next = 1; next < width; next += 1) line[this.#column + next] = "";
      this.#column += width;
    }
  }
}
