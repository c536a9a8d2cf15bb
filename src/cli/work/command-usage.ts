/**
 * What the commands of one lease write to the file ERRAND_USAGE_FILE: one JSON object, or one on each line; the last whole one
 * counts. It is reported while a command runs, because a budget stops only work whose usage the broker knows.
 * Limit: of a long file, only the end is read.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { parseLenient } from "../../client/lenient.ts";
import { issuesOf, type Read, readAs } from "../../schema/issues.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { AMOUNTS, type UsageReport, usageReportSchema } from "../../schema/usage.ts";
import { parseJson } from "../../util/parse-json.ts";
import { sleep } from "../../util/timing.ts";

const READ_MAX = 64 * 1024;
const EVERY_MS = 2000;

export class CommandUsage {
  readonly #report: (usage: UsageReport) => void;
  readonly #onUnread: (why: string) => void;
  readonly #everyMs: number;
  /** Of the commands of this lease that have ended: each begins with an empty file, and counts from zero. */
  #ended: UsageReport = {};

  /** `onUnread`: a command has ended, and its file has something, but no report. */
  constructor(
    report: (usage: UsageReport) => void,
    onUnread: (why: string) => void = () => undefined,
    everyMs = EVERY_MS,
  ) {
    this.#report = report;
    this.#onUnread = onUnread;
    this.#everyMs = everyMs;
  }

  /** Reports what the command of `run` writes to its file, and once more when it has ended, in whatever way. */
  async during<T>(file: string, run: () => Promise<T>): Promise<T> {
    const over = new AbortController();
    const watched = this.#watch(file, over.signal);
    try {
      return await run();
    } finally {
      over.abort();
      this.#ended = await watched;
    }
  }

  /** Returns what all commands used until the signal. */
  async #watch(file: string, over: AbortSignal): Promise<UsageReport> {
    let before = "";
    let used: UsageReport | undefined;
    for (let isOver = false; !isOver; ) {
      await sleep(this.#everyMs, over).catch(() => undefined);
      isOver = over.aborted;
      const text = await readEnd(file);
      const found = text === before ? undefined : usageIn(text);
      before = text;
      if (found === undefined) continue;
      const next = combined(used ?? {}, found, Math.max);
      if (JSON.stringify(next) === JSON.stringify(used)) continue;
      used = next;
      this.#report(combined(this.#ended, used, sum));
    }
    if (used === undefined && before.trim() !== "") this.#onUnread(whyNot(before));
    return combined(this.#ended, used ?? {}, sum);
  }
}

/** The broker keeps 12 significant digits of a cost. */
const sum = (a: number, b: number): number =>
  Number.isInteger(a + b) ? a + b : Number((a + b).toPrecision(12));

/** Amounts that both have are combined: no amount of a lease may shrink. */
function combined(a: UsageReport, b: UsageReport, combine: (a: number, b: number) => number): UsageReport {
  const amounts = AMOUNTS.flatMap((name) => {
    const [first, second] = [a[name], b[name]];
    return first === undefined || second === undefined ? [] : [[name, combine(first, second)]];
  });
  return { ...a, ...b, ...Object.fromEntries(amounts) };
}

/** Undefined if there is none. A line that is not whole yet is no JSON object. */
function usageIn(text: string): UsageReport | undefined {
  for (const candidate of [text, ...text.trim().split("\n").reverse()]) {
    const { data = {} } = reportIn(parseJson(candidate));
    if (Object.keys(data).length > 0) return data;
  }
  return undefined;
}

/** As models' APIs report it: with more members, and null for what is not known. */
function reportIn(value: unknown): Read<UsageReport> {
  if (!isObject(value)) return readAs(usageReportSchema, value);
  const known = Object.entries(value).filter(([, amount]) => amount !== null);
  return parseLenient(usageReportSchema, Object.fromEntries(known));
}

/** Why nothing is a report: of the last line that is JSON, or of the file. */
function whyNot(text: string): string {
  for (const candidate of [text, ...text.trim().split("\n").reverse()]) {
    const value = parseJson(candidate);
    if (value === undefined) continue;
    const { error } = reportIn(value);
    if (error) return issuesOf(error, { whole: "it" }).text;
    return `it has none of ${AMOUNTS.join(", ")}`;
  }
  return "it is not JSON";
}

async function readEnd(path: string): Promise<string> {
  // To open a pipe would wait for its other end.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  try {
    return file === undefined ? "" : await endOf(file);
  } catch {
    return "";
  } finally {
    await file?.close().catch(() => undefined);
  }
}

async function endOf(file: FileHandle): Promise<string> {
  const stats = await file.stat();
  if (!stats.isFile()) return "";
  const position = Math.max(0, stats.size - READ_MAX);
  const { buffer, bytesRead } = await file.read({
    buffer: Buffer.alloc(stats.size - position),
    position,
  });
  const text = buffer.subarray(0, bytesRead).toString("utf8");
  return position === 0 ? text : text.slice(text.indexOf("\n") + 1);
}
