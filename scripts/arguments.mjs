/**
 * Reads the arguments of the scripts: --help prints the usage and exits with 0; a wrong argument is one line that names the
 * known ones, and exits with 64.
 */
import { parseArgs } from "node:util";

export const EXIT_USAGE = 64;

/** Its message is one line. */
export class WrongArguments extends Error {}

/** As `parseArgs`, with --help. `names`: whether arguments that are no options are allowed. Throws WrongArguments. */
export function parseArguments(args, options, { names = false } = {}) {
  const all = { ...options, help: { type: "boolean", short: "h", default: false } };
  try {
    return parseArgs({ args, options: all, allowPositionals: names });
  } catch (error) {
    const [, unknown] = /^Unknown option '([^']*)'/.exec(error.message) ?? [];
    const [, word] = /^Unexpected argument '([^']*)'/.exec(error.message) ?? [];
    const known = Object.keys(all).map((name) => `--${name}`);
    if (unknown !== undefined) throw unknownName("option", unknown, known);
    if (word !== undefined) throw unknownName("argument", word, known);
    throw new WrongArguments(`${error.message.split("\n")[0].replace(/\.$/, "")}; see --help.`);
  }
}

export const unknownName = (what, name, known) =>
  new WrongArguments(`There is no ${what} '${name}'; known: ${known.join(", ")}.`);

/** Each must be one of `known`. */
export function checkNames(what, names, known) {
  for (const name of names) if (!known.includes(name)) throw unknownName(what, name, known);
}

/** The value of an option as a number above 0. */
export function positive(option, text) {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new WrongArguments(`--${option} needs a number above 0, not '${text}'.`);
}

/** What `read` returns; ends the program at --help, and at a wrong argument. */
export function orExit(usage, read) {
  let parsed;
  try {
    parsed = read();
  } catch (error) {
    if (!(error instanceof WrongArguments)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(EXIT_USAGE);
  }
  if (!parsed.values.help) return parsed;
  process.stdout.write(usage.endsWith("\n") ? usage : `${usage}\n`);
  process.exit(0);
}

/** Options, and names with `names`, of this program. Ends it at --help, and at a wrong argument. */
export const readArguments = (usage, options, { args = process.argv.slice(2), ...more } = {}) =>
  orExit(usage, () => parseArguments(args, options, more));
