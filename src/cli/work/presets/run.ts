/** Reads the JSON lines that the program of a preset prints, and turns its end into a result with the answer as output. */
import { StringDecoder } from "node:string_decoder";
import { Head } from "../capture.ts";
import { type CommandResult, STDOUT_MAX } from "../child.ts";
import type { Preset, Seen } from "./preset.ts";

/** A longer line, such as a tool's result, is skipped. */
const LINE_MAX = 4 * 1024 * 1024;

export class PresetRun {
  readonly #preset: Preset;
  readonly #onProgress: (text: string) => void;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #skips = false;
  #seen: Seen = {};

  constructor(preset: Preset, onProgress: (text: string) => void) {
    this.#preset = preset;
    this.#onProgress = onProgress;
  }

  /** The conversation's id, if the program has printed one. */
  get session(): string | undefined {
    return this.#seen.session;
  }

  add(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!this.#skips) this.#read(line);
      this.#skips = false;
    }
    if (this.#rest.length <= LINE_MAX) return;
    this.#rest = "";
    this.#skips = true;
  }

  /** The command's result, with the answer in place of the events. Status 0 without an answer is a failure. */
  result(result: CommandResult): CommandResult {
    if (!this.#skips) this.#read(this.#rest);
    this.#rest = "";
    const { answer, error } = this.#seen;
    const stdout = new Head(STDOUT_MAX);
    stdout.add(Buffer.from(answer ?? ""));
    if (result.exitCode === 0 && error === undefined && answer !== undefined) return { ...result, stdout };
    const stderr =
      error ?? (result.stderr || (result.exitCode === 0 ? `${this.#preset.program} printed no answer` : ""));
    return { ...result, exitCode: result.exitCode || 1, stdout, stderr };
  }

  #read(line: string): void {
    const seen = this.#preset.read(parsed(line));
    const { session, progress, answer, error } = seen;
    this.#seen = {
      session: session ?? this.#seen.session,
      answer: answer ?? this.#seen.answer,
      error: error ?? this.#seen.error,
    };
    if (progress) this.#onProgress(progress);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Programs print warnings, too.
    return undefined;
  }
}
