/**
 * The tables of all lists: as wide as the terminal, or 80 columns without one; `--wide` shows everything, `-o` chooses
 * the fields.
 */
import { type Command, InvalidArgumentError } from "commander";
import { didYouMean } from "../../util/similar.ts";
import type { GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { separated } from "../input/arguments.ts";
import { note, oneLine, type Painter, painter, print } from "./output.ts";
import { terminalWidth } from "./terminal-width.ts";
import { cutTo, displayWidth, padTo } from "./text.ts";
import { ageText, localTime } from "./time.ts";

export interface Column<T> {
  /** For `-o`, and in capitals the head of the column. */
  readonly name: string;
  /** The head with --wide, if the cells have another meaning there. */
  readonly wideName?: string | undefined;
  readonly cell: (row: T, wide: boolean) => string;
  /** The whole identifier of the row: for `-o name`, and where it is the only field in a pipe. */
  readonly identifier?: (row: T) => string;
  readonly paint?: (row: T, paint: Painter) => (text: string) => string;
  /** `default`: always; `wide`: with --wide; `named`: only with -o. */
  readonly shown?: "default" | "wide" | "named" | undefined;
  /** An id, for which part of it is of no use: never cut, however narrow the terminal is. */
  readonly isWhole?: boolean;
  /** If the line is too long, this column is cut first. */
  readonly isText?: boolean;
  /** If the line is too long and has no texts to cut, this column is left out: the last one first. */
  readonly isMinor?: boolean;
  /** Print the cells unchanged, with leading spaces: they contain no text from other people. */
  readonly isClean?: boolean;
}

export interface TableOptions extends GlobalOptions {
  readonly wide?: boolean;
  readonly output?: readonly string[];
  /** False with --no-headers. */
  readonly headers?: boolean;
}

const GAP = "  ";
const SHORTEST_TEXT = 16;
const SHORTEST = 4;

/** Adds --wide, -o and --no-headers. */
export function addTableOptions<T>(command: Command, columns: readonly Column<T>[]): Command {
  return addFieldOptions(command.option("--wide", "show everything, however long the lines become"), columns);
}

/** Adds -o and --no-headers. */
export function addFieldOptions<T>(command: Command, columns: readonly Column<T>[]): Command {
  const names = columns.map(({ name }) => name);
  const known = columns.some(({ identifier }) => identifier) ? [...new Set([...names, NAME])] : names;
  return command
    .option(
      "-o, --output <fields>",
      `show these fields, separated by commas: ${names.join(", ")}; a single field is piped uncut and without a header line${known.includes(NAME) ? "; 'name' prints one identifier per line" : ""}`,
      separated(known, (text: string) => {
        const fields = text.split(",").map((name) => name.trim());
        const unknown = fields.find((field) => !known.includes(field));
        if (unknown === undefined) return fields;
        if (FORMATS.test(unknown)) throw new InvalidArgumentError("For JSON, use --json instead of -o.");
        if (unknown === "wide") throw new InvalidArgumentError("For more columns, use --wide instead of -o.");
        const said = `'${unknown}' is not a field; use ${names.join(", ")}.`;
        throw new InvalidArgumentError(`${said} ${didYouMean(unknown, names)}`.trim());
      }),
    )
    .option("--no-headers", "print no header line");
}

/** The field of kubectl's `-o name`. */
const NAME = "name";
/** What other programs take after -o. */
const FORMATS = /^(?:json|jsonl|ndjson|yaml|yml)$|^(?:jsonpath|go-template|custom-columns)\b/;

/** A column with an age; with --wide the instant in local time. */
export function ageColumn<T>(
  name: string,
  instantOf: (row: T) => string | null,
  { none = "-", ...rest }: { readonly none?: string } & Pick<Column<T>, "shown" | "wideName"> = {},
): Column<T> {
  const cell = (row: T, wide: boolean) => {
    const instant = instantOf(row);
    if (instant === null) return none;
    return wide ? localTime(instant) : ageText(instant);
  };
  return { name, cell, ...rest };
}

/** Prints the rows, or says on stderr that there are none. */
export async function printRows<T>(
  host: CliHost,
  rows: readonly T[],
  columns: readonly Column<T>[],
  options: TableOptions,
  none: string,
): Promise<void> {
  if (rows.length === 0) return note(host, `${none}.`);
  await new ListTable(host, columns, options).print(rows);
}

function columnOf<T>(columns: readonly Column<T>[], field: string, isWhole: boolean): Column<T>[] {
  const found =
    columns.find(({ name }) => name === field) ??
    columns.find(({ identifier }) => field === NAME && identifier);
  if (!found) return [];
  const { identifier } = found;
  return [identifier && (isWhole || field !== found.name) ? { ...found, cell: identifier } : found];
}

/** Prints a long list in portions: the head once, and columns that do not become narrower. */
export class ListTable<T> {
  readonly #host: CliHost;
  #columns: readonly Column<T>[];
  readonly #isWide: boolean;
  readonly #width: number;
  #widths: number[];
  /** Whether the header line is printed, or is not wanted. */
  #isHeaderDone: boolean;

  /** `width` replaces the terminal's. */
  constructor(
    host: CliHost,
    columns: readonly Column<T>[],
    { wide = false, output, headers = true }: TableOptions,
    width = terminalWidth(host, "stdout"),
  ) {
    this.#host = host;
    this.#isWide = wide;
    // Its lines are arguments of another program.
    const isForPipe = output?.length === 1 && !host.isTty.stdout;
    const isName = output?.length === 1 && output[0] === NAME;
    this.#columns =
      output?.flatMap((field) => columnOf(columns, field, isForPipe || isName)) ??
      columns.filter(({ shown = "default" }) => shown === "default" || (wide && shown === "wide"));
    this.#isHeaderDone = isForPipe || isName || !headers;
    this.#width = wide || isForPipe || isName ? Number.POSITIVE_INFINITY : width;
    this.#widths = this.#heads().map((head) => (this.#isHeaderDone ? 0 : head.length));
  }

  async print(rows: readonly T[]): Promise<void> {
    const lines = this.lines(rows);
    if (lines.length > 0) await print(this.#host, lines.join("\n"));
  }

  /** The next portion, with the head if it is the first one. */
  lines(rows: readonly T[]): string[] {
    if (!this.#isHeaderDone) this.#leaveOut(rows);
    const cells = this.#cells(rows);
    for (const row of cells) {
      this.#widths = this.#widths.map((width, at) => Math.max(width, displayWidth(row[at] ?? "")));
    }
    this.#shrink();
    const paint = painter(this.#host, "stdout");
    const lines = cells.map((row, at) => this.#line(row, rows[at], paint));
    if (!this.#isHeaderDone) lines.unshift(paint.bold(this.#line(this.#heads())));
    this.#isHeaderDone = true;
    return lines;
  }

  /** Leaves out minor columns until all cells of the others fit. */
  #leaveOut(rows: readonly T[]): void {
    for (;;) {
      const minor = this.#columns.findLastIndex(({ isMinor }) => isMinor);
      const widths = this.#cells(rows).reduce(
        (widest, row) => widest.map((width, at) => Math.max(width, displayWidth(row[at] ?? ""))),
        this.#heads().map((head) => head.length),
      );
      const total = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);
      if (minor === -1 || total <= this.#width) return;
      this.#columns = this.#columns.filter((_, at) => at !== minor);
      this.#widths = this.#heads().map((head) => head.length);
    }
  }

  #cells(rows: readonly T[]): string[][] {
    return rows.map((row) =>
      this.#columns.map(({ cell, isClean }) => {
        const text = cell(row, this.#isWide);
        return isClean ? text : oneLine(text);
      }),
    );
  }

  #heads(): string[] {
    return this.#columns.map(({ name, wideName = name }) => (this.#isWide ? wideName : name).toUpperCase());
  }

  #line(cells: readonly string[], row?: T, paint?: Painter): string {
    const last = cells.length - 1;
    const shown = cells.map((cell, at) => {
      const width = this.#widths[at] ?? 0;
      const text = cutTo(cell, width);
      const padded = at === last ? text : padTo(text, width);
      const color = row !== undefined && paint ? this.#columns[at]?.paint?.(row, paint) : undefined;
      return color ? color(padded) : padded;
    });
    return shown.join(GAP).trimEnd();
  }

  /** Cuts texts first, then the widest columns that are not ids. */
  #shrink(): void {
    const total = () => this.#widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);
    for (let over = total() - this.#width; over > 0; over -= 1) {
      const at = this.#widest(true) ?? this.#widest(false);
      if (at === undefined) return;
      this.#widths[at] = (this.#widths[at] ?? 0) - 1;
    }
  }

  #widest(isText: boolean): number | undefined {
    const least = isText ? SHORTEST_TEXT : SHORTEST;
    let found: number | undefined;
    for (const [at, width] of this.#widths.entries()) {
      if (this.#columns[at]?.isWhole || (isText && !this.#columns[at]?.isText)) continue;
      if (width > least && width > (found === undefined ? 0 : (this.#widths[found] ?? 0))) found = at;
    }
    return found;
  }
}
