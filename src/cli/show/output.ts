/**
 * Prints results to stdout and everything else to stderr, with color on terminals only. Text from others is shown on
 * one line without control characters. A reply keeps its lines, and is unchanged where no terminal shows it.
 */
import type { Writable } from "node:stream";
import type { ErrandApiError } from "../../client/errors.ts";
import { isPending, type Progress, type State } from "../../schema/delegation.ts";
import { oneLine, plainText } from "../../util/text.ts";
import type { CliHost } from "../host.ts";
import { terminalWidth } from "./terminal-width.ts";
import { wrapText } from "./text.ts";

export { oneLine, plainText };

/** Resolves when the text is written, so that a slow reader slows down the writer instead of filling its memory. */
export function write(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

export function print(host: CliHost, line: string): Promise<void> {
  return write(host.stdout, `${line}\n`);
}

export function printJson(host: CliHost, value: unknown): Promise<void> {
  return print(host, jsonText(value));
}

/** On one line. Characters that control a terminal or the direction of text are escaped, which changes no value. */
export const jsonText = (value: unknown): string =>
  JSON.stringify(value).replace(
    JSON_CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** The text with the program in commands that are quoted or follow a prompt named as it was started. */
export const withCommand = ({ command = "errand" }: CliHost, text: string): string =>
  command === "errand" ? text : text.replace(/(['"]|: |\$ )errand (?=[a-z])/g, `$1${command} `);

/** Wrapped on a terminal. Elsewhere, a note is one line. */
const fitted = (host: CliHost, text: string): string =>
  host.isTty.stderr ? wrapText(text, terminalWidth(host, "stderr"), "  ") : text;

/** Prints a note to stderr. */
export function note(host: CliHost, line: string): Promise<void> {
  return write(host.stderr, `${fitted(host, `errand: ${withCommand(host, line)}`)}\n`);
}

export async function printError(host: CliHost, error: ErrandApiError, json: boolean): Promise<void> {
  if (json) return write(host.stderr, `${jsonText(error.problem)}\n`);
  const paint = painter(host, "stderr");
  const said = `errand: ${withCommand(host, `${sentence(error.message)} ${oneLine(error.recovery)}`)}`;
  await write(host.stderr, `${fitted(host, said).replace("errand:", paint.red("errand:"))}\n`);
  for (const { path, reason } of issuesOf(error)) {
    if (error.message.includes(reason)) continue;
    await write(host.stderr, `  ${path}: ${reason}\n`);
  }
  if (error.category === "INTERNAL" && error.requestId) {
    await write(host.stderr, `  request id: ${oneLine(error.requestId)}\n`);
  }
}

type Paint = (text: string) => string;
export interface Painter {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly inverse: Paint;
}

export function painter(host: CliHost, stream: "stdout" | "stderr"): Painter {
  const color = host.isTty[stream] && !host.childEnv.NO_COLOR && host.childEnv.TERM !== "dumb";
  const sgr = (open: number, close: number) => (text: string) =>
    color && text !== "" ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return {
    bold: sgr(1, 22),
    dim: sgr(2, 22),
    red: sgr(31, 39),
    green: sgr(32, 39),
    yellow: sgr(33, 39),
    inverse: sgr(7, 27),
  };
}

/** The state for people: both states with an open question are one word, and a wait for children is short. `--state` and JSON have their names. */
export const stateText = (state: string): string =>
  state.endsWith("_required") ? "asks" : state === "awaiting_children" ? "waits" : oneLine(state);

/** The color of a delegation's state. */
export function statePaint(state: State, { bold, green, red, yellow }: Painter): Paint {
  if (state === "completed") return green;
  if (state.endsWith("_required")) return yellow;
  return isPending(state) ? bold : red;
}

/** What JSON leaves as it is. */
const JSON_CONTROLS = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
/** Columns padded to their widest cell. */
function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    }
  }
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Prints a table whose first row is the head. */
export async function printTable(
  host: CliHost,
  cells: readonly (readonly string[])[],
  hasHead = true,
): Promise<void> {
  const [head = "", ...rows] = table(cells).split("\n");
  const heads = hasHead ? [painter(host, "stdout").bold(head)] : [];
  await print(host, [...heads, ...rows].join("\n"));
}

/** `3/10 counting` */
export function progressText({ done, total, message }: Progress): string {
  const share = done === undefined ? "" : `${done}/${total ?? "?"}`;
  return [share, oneLine(message ?? "", 200)].filter(Boolean).join(" ");
}

function sentence(text: string): string {
  const line = oneLine(text);
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

/** The issues of a refused request, for a terminal. */
export function issuesOf({ details }: ErrandApiError): { path: string; reason: string }[] {
  const issues = details?.issues;
  if (!Array.isArray(issues)) return [];
  return issues.flatMap((issue: unknown) => {
    if (typeof issue !== "object" || issue === null || !("path" in issue) || !("reason" in issue)) return [];
    const path = Array.isArray(issue.path) ? issue.path.join(".") : String(issue.path);
    return [{ path: oneLine(path), reason: oneLine(String(issue.reason)) }];
  });
}
