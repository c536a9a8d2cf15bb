/**
 * Lists what a shell can complete after each command, from commander's tree: subcommands, options and the options'
 * values.
 */
import type { Command, Option } from "commander";

/** What can follow an option: no value, a file, any value, or one of these words. */
export type OptionValue = "nothing" | "file" | "anything" | readonly string[];

export interface OptionSpec {
  readonly flags: readonly string[];
  readonly description: string;
  readonly value: OptionValue;
}

export interface CommandSpec {
  /** `errand agent put` */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionSpec[];
  /** The choices of the first argument. */
  readonly words: readonly string[];
}

export function commandSpecs(
  program: Command,
  above = "",
  inherited: readonly OptionSpec[] = [],
): CommandSpec[] {
  const path = above === "" ? program.name() : `${above} ${program.name()}`;
  const help = program.createHelp();
  const own = help.visibleOptions(program).map(toOption);
  const commands = program.commands.map((one) => ({ name: one.name(), description: one.description() }));
  const words = program.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  // Subcommands inherit all options but --help and --version.
  const passedOn = [...inherited, ...own].filter(
    ({ flags }) => !/^--(?:help|version)$/.test(flags.at(-1) ?? ""),
  );
  const spec = { path, commands, options: [...own, ...inherited], words };
  return [spec, ...program.commands.flatMap((one) => commandSpecs(one, path, passedOn))];
}

function toOption({ short, long, description, required, optional, argChoices, flags }: Option): OptionSpec {
  const value =
    !required && !optional
      ? "nothing"
      : (argChoices ?? (/<(?:path|folder)>/.test(flags) ? "file" : "anything"));
  const own = [short, long].filter((flag) => flag !== undefined && flag !== null);
  return { flags: own, description, value };
}
