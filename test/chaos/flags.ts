/** A command line from one table: what `parseArgs` accepts, and the help. */
import { parseArguments, WrongArguments } from "../../scripts/arguments.mjs";

export interface Flag {
  readonly help: string;
  /** What the help calls its value; a flag without one is a switch. */
  readonly value?: string;
  /** The lowest and highest number allowed. */
  readonly range?: readonly [low: number, high: number];
}

export class UsageError extends Error {}

export interface Flags<Name extends string> {
  readonly text: (name: Name) => string | undefined;
  readonly number: (name: Name) => number | undefined;
  readonly isSet: (name: Name) => boolean;
}

export function parseFlags<Name extends string>(
  table: Readonly<Record<Name, Flag>>,
  args: readonly string[],
): Flags<Name> {
  const rows = Object.entries<Flag>(table);
  const options = Object.fromEntries(
    rows.map(([name, { value }]) => [
      name,
      { type: value === undefined ? ("boolean" as const) : ("string" as const) },
    ]),
  );
  const values = new Map(Object.entries(parse(args, options)));
  const text = (name: Name): string | undefined => {
    const value = values.get(name);
    return typeof value === "string" ? value : undefined;
  };
  return {
    text,
    number: (name) => {
      const given = text(name);
      if (given === undefined) return undefined;
      const [low, high] = table[name].range ?? [0, Number.MAX_SAFE_INTEGER];
      const value = Number(given);
      if (value >= low && value <= high) return value;
      throw new UsageError(`--${name} ${given}: give a number from ${low} to ${high}.`);
    },
    isSet: (name) => values.get(name) === true,
  };
}

function parse(args: readonly string[], options: Record<string, { type: "boolean" | "string" }>) {
  try {
    return parseArguments(args, options).values;
  } catch (error) {
    throw error instanceof WrongArguments ? new UsageError(error.message) : error;
  }
}

/** One line per flag. */
export function helpOf(table: Readonly<Record<string, Flag>>): string {
  const rows = Object.entries(table).map(
    ([name, { value, help }]) => [`--${name}${value === undefined ? "" : ` ${value}`}`, help] as const,
  );
  const width = Math.max(...rows.map(([flag]) => flag.length)) + 2;
  return rows.map(([flag, help]) => `  ${flag.padEnd(width)}${help}\n`).join("");
}
