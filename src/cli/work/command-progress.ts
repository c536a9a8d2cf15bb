/** The line protocol of progress: `{"progress": {…}}`, or any other line as a message. */

import { type Progress, progressSchema } from "../../schema/delegation.ts";
import { parseExact } from "../../schema/exact-numbers.ts";
import { oneLine } from "../show/output.ts";
import { cutBytes } from "./capture.ts";

const LINE = /^\s*\{\s*"progress"\s*:/;
const MESSAGE_MAX = 1024;
/** A command that ends within this time after a line of stdout has printed its answer. */
const ANSWER_AFTER_MS = 250;

/** True for a line of the protocol; such lines are left out of error messages. */
export function isProgressLine(line: string): boolean {
  return LINE.test(line);
}

/** Undefined for a line without text. A line that does not fit the protocol is a message; the answer has none. */
export function toProgress(line: string, mayBeProtocol: boolean): Progress | string | undefined {
  const progress = mayBeProtocol && isProgressLine(line) ? parsed(line) : undefined;
  return progress ?? (cutBytes(oneLine(line), MESSAGE_MAX) || undefined);
}

/**
 * Lines of stdout as progress. The last one belongs to the answer, so a line is reported only if the command runs on for
 * a moment.
 */
export class OutputProgress {
  readonly #report: (progress: Progress | string) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #latest: Progress | string = "";

  constructor(report: (progress: Progress | string) => void) {
    this.#report = report;
  }

  push(progress: Progress | string): void {
    this.#latest = progress;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#report(this.#latest);
    }, ANSWER_AFTER_MS);
  }

  /** Drops what waits: the command has ended. */
  end(): void {
    clearTimeout(this.#timer);
  }
}

function parsed(line: string): Progress | undefined {
  try {
    const value: unknown = parseExact(line);
    const given = typeof value === "object" && value !== null && "progress" in value ? value.progress : null;
    return progressSchema.safeParse(given).data;
  } catch {
    return undefined;
  }
}
