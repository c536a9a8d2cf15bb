/** Reads the JSON lines that the program of a preset prints, and says how the run ended. */
import { StringDecoder } from "node:string_decoder";
import { cutBytes, Tail } from "../capture.ts";
import type { CommandResult } from "../child.ts";
import { classify, type Facts, type Verdict } from "./classify.ts";
import type { Preset, Seen } from "./preset.ts";

/** A longer line, such as a tool's result, is skipped. */
const LINE_MAX = 4 * 1024 * 1024;
const REFUSED_MAX = 1_000;
const PRINTED_MAX = 4096;
/** The answer of a delegation may be an artifact of 3 MiB. */
const ANSWER_MAX = 4 * 1024 * 1024;

export class PresetRun {
  readonly #preset: Preset;
  readonly #onProgress: (text: string) => void;
  readonly #stdout = new Lines((line) => this.#readLine(line));
  readonly #stderr = new Lines((line) => this.#take(this.#preset.readStderr?.(line) ?? {}));
  /** What it prints to stdout besides events. */
  readonly #printed = new Tail(PRINTED_MAX);
  #session: string | undefined;
  #used: Pick<Seen, "usage" | "conversationUsage"> = {};
  #facts: Facts;

  constructor(preset: Preset, onProgress: (text: string) => void) {
    this.#preset = preset;
    this.#onProgress = onProgress;
    this.#facts = { name: preset.name };
  }

  /** The conversation's id, if the program has printed one. */
  get session(): string | undefined {
    return this.#session;
  }

  get began(): boolean {
    return this.#facts.began === true;
  }

  /** The answer of the model, also if the run failed. */
  get answer(): string | undefined {
    return this.#facts.answer;
  }

  /** The result that it handed over apart from the answer. */
  get separateResult(): string | null | undefined {
    return this.#facts.separateResult;
  }

  add(chunk: Buffer): void {
    this.#stdout.add(chunk);
  }

  /** One event, for a caller that reads stdout itself. */
  see(event: unknown): void {
    this.#take(this.#preset.read(event));
  }

  /** Output of stdout that is no event. */
  seePrinted(line: Buffer): void {
    this.#printed.add(line);
  }

  addStderr(chunk: Buffer): void {
    this.#stderr.add(chunk);
  }

  verdict({ exitCode, signal, stderr }: CommandResult, resumes: boolean): Verdict {
    this.#stdout.end();
    this.#stderr.end();
    const printed = cutBytes(stderr || this.#printed.text(), PRINTED_MAX);
    return classify(this.#facts, { exitCode, signal, printed, resumes });
  }

  #readLine(line: string): void {
    const event = parsed(line);
    if (event !== undefined) this.#take(this.#preset.read(event));
    // Programs print warnings, too.
    else if (line.trim() !== "") this.#printed.add(Buffer.from(`${line}\n`));
  }

  /** What the run has used, and what its conversation has, as far as the program says so. */
  get used(): Pick<Seen, "usage" | "conversationUsage"> {
    return this.#used;
  }

  #take({ session, progress, refused, usage, conversationUsage, answerMore, ...facts }: Seen): void {
    this.#session = session ?? this.#session;
    if (progress) this.#onProgress(progress);
    if (usage) this.#used = { ...this.#used, usage };
    if (conversationUsage) this.#used = { ...this.#used, conversationUsage };
    const known = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
    const all = [...(this.#facts.refused ?? []), ...(refused ?? [])];
    const answer = (this.#facts.answer ?? "") + (answerMore ?? "");
    this.#facts = {
      ...this.#facts,
      ...(answerMore !== undefined && answer.length <= ANSWER_MAX && { answer }),
      ...known,
      refused: [...new Set(all)].slice(0, REFUSED_MAX),
    };
  }
}

/** Splits output into whole lines. */
class Lines {
  readonly #onLine: (line: string) => void;
  readonly #decoder = new StringDecoder("utf8");
  /** The pieces of a line that has not ended: joining them at each chunk would take quadratic time. */
  #rest: string[] = [];
  #length = 0;
  #skips = false;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(chunk: Buffer): void {
    const [first = "", ...others] = this.#decoder.write(chunk).split("\n");
    this.#keep(first);
    for (const next of others) {
      this.end();
      this.#keep(next);
    }
  }

  /** Ends the line. */
  end(): void {
    if (!this.#skips) this.#onLine(this.#rest.join(""));
    this.#rest = [];
    this.#length = 0;
    this.#skips = false;
  }

  #keep(text: string): void {
    this.#length += text.length;
    this.#skips ||= this.#length > LINE_MAX;
    if (this.#skips) this.#rest = [];
    else this.#rest.push(text);
  }
}

function parsed(line: string): unknown {
  try {
    // Some programs on Windows write a byte order mark first.
    return JSON.parse(line.replace(/^\uFEFF+/, ""));
  } catch {
    return undefined;
  }
}
