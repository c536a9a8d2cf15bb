/** One process of Claude Code in print mode, which reads messages from stdin until that is closed. */
import type { Writable } from "node:stream";
import { Frames } from "../acp/frames.ts";
import type { ChildProcesses, CommandResult } from "../child.ts";

export interface ClaudeStart {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly children: ChildProcesses;
  readonly onStart: (group: number) => void;
  /** One JSON object of stdout. */
  readonly onEvent: (event: object) => void;
  /** What it prints besides. */
  readonly onOther: (line: Buffer) => void;
  readonly onStderr: (chunk: Buffer) => void;
  readonly onOutput: () => void;
}

export class ClaudeProcess {
  readonly ended: Promise<CommandResult>;
  readonly #stop = new AbortController();
  #stdin: Writable | undefined;
  #endless: number | undefined;

  constructor(start: ClaudeStart) {
    const { command, env, cwd, children, onStart, onEvent, onOther, onStderr, onOutput } = start;
    const frames = new Frames({
      onFrame: (_line, event) => onEvent(event),
      onOther,
      onEndless: (bytes) => {
        this.#endless = bytes;
        this.#stop.abort(new Error("its output cannot be read"));
      },
    });
    this.ended = children.run({
      command,
      env,
      cwd,
      input: (stdin) => {
        this.#stdin = stdin;
      },
      signal: this.#stop.signal,
      onStart,
      onLine: () => undefined,
      onStdout: (chunk) => {
        onOutput();
        frames.add(chunk);
      },
      onStderr: (chunk) => {
        onOutput();
        onStderr(chunk);
      },
      keepStdout: 0,
      limits: {},
    });
    this.ended.catch(() => undefined);
  }

  /** So many bytes came without a line end, and the process was stopped. */
  get endless(): number | undefined {
    return this.#endless;
  }

  /** It reads more. */
  get isOpen(): boolean {
    return this.#stdin?.writable === true && !this.#stop.signal.aborted;
  }

  send(message: object): void {
    if (this.isOpen) this.#stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** It ends when it has done what it has read. */
  close(): void {
    this.#stdin?.end();
  }

  /** SIGTERM to its group, then SIGKILL. Resolves when it has ended. */
  async end(): Promise<void> {
    this.#stop.abort(new Error("the program was stopped"));
    await this.ended.catch(() => undefined);
  }
}

/** The arguments of Claude Code in print mode, with messages both ways. */
interface Given {
  /** The path of the settings with the hook. */
  readonly settings: string | undefined;
  readonly extra: readonly string[];
}

/** `session` is the conversation to continue, `folders` are those that it may use besides its own. */
export const argumentsOf = (
  session: string | undefined,
  folders: readonly string[],
  { settings, extra }: Given,
): string[] => [
  ...["-p", "--input-format", "stream-json", "--output-format", "stream-json"],
  // Takes all arguments up to the next flag.
  ...folders.flatMap((folder) => ["--add-dir", folder]),
  ...["--verbose", "--replay-user-messages", "--permission-prompt-tool", "stdio"],
  ...(settings === undefined ? [] : ["--settings", settings]),
  ...(session === undefined ? [] : ["--resume", session]),
  ...extra,
];
