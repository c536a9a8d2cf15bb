/**
 * Lists what a shell can complete after each command, from commander's tree: subcommands, options, the options' values
 * and the arguments.
 */
import type { Command, Option } from "commander";
import { agentName, delegationId, delegationIds, PRINCIPALS, separatedWords } from "../input/arguments.ts";
import type { Listing } from "./listings.ts";

/** The value of an option: none, a file, a listing by the broker, any value, or one of these words. */
export type OptionValue = "nothing" | "file" | "anything" | Listing | readonly string[];

export interface OptionSpec {
  readonly flags: readonly string[];
  readonly description: string;
  readonly value: OptionValue;
  /** The value may be several of its words, separated by commas. */
  readonly isList: boolean;
}

export interface CommandSpec {
  /** `errand agent put` */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionSpec[];
  /** The choices of the first argument. */
  readonly words: readonly string[];
  /** The kind of the first argument, if a shell can list it; with `isRepeated`, of all others, too. */
  readonly argument: { readonly value: "file" | Listing; readonly isRepeated: boolean } | undefined;
}

/** For these commands, only delegations with an open question are offered. */
const ANSWERING: readonly string[] = ["answer", "approve", "deny"];
const FILE = /[<[](?:path|folder|file)[>\]]/;

export function commandSpecs(
  program: Command,
  above = "",
  inherited: readonly OptionSpec[] = [],
): CommandSpec[] {
  const path = above === "" ? program.name() : `${above} ${program.name()}`;
  const help = program.createHelp();
  const own = help.visibleOptions(program).map(toOption);
  const commands = program.commands.map((one) => ({ name: one.name(), description: one.description() }));
  const words = program.registeredArguments.flatMap((one) => one.argChoices ?? beginningsOf(one.name()));
  // Subcommands inherit all options but --help and --version.
  const passedOn = [...inherited, ...own].filter(
    ({ flags }) => !/^--(?:help|version)$/.test(flags.at(-1) ?? ""),
  );
  const spec = { path, commands, options: [...own, ...inherited], words, argument: argumentOf(program) };
  return [spec, ...program.commands.flatMap((one) => commandSpecs(one, path, passedOn))];
}

function argumentOf(command: Command): CommandSpec["argument"] {
  const [first] = command.registeredArguments;
  if (first === undefined) return undefined;
  const listing = ANSWERING.includes(command.name()) ? "questions" : listingOf(first.parseArg);
  const value = listing ?? (FILE.test(`<${first.name()}>`) ? "file" : undefined);
  return value && { value, isRepeated: first.variadic };
}

/** How the values of an argument begin. */
const beginningsOf = (argument: string): readonly string[] => (argument === "principal" ? PRINCIPALS : []);

/** Derives the listing from the parser of the value. */
function listingOf(parser: unknown): Listing | undefined {
  if (parser === agentName) return "agents";
  return parser === delegationId || parser === delegationIds ? "delegations" : undefined;
}

function toOption(option: Option): OptionSpec {
  const { short, long, description, required, optional, argChoices, flags, parseArg } = option;
  const list = separatedWords(parseArg);
  const value =
    !required && !optional
      ? "nothing"
      : (list ?? argChoices ?? listingOf(parseArg) ?? (FILE.test(flags) ? "file" : "anything"));
  const own = [short, long].filter((flag) => flag !== undefined && flag !== null);
  return { flags: own, description, value, isList: list !== undefined };
}
