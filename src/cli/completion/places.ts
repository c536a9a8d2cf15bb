/**
 * What can be completed where: the subcommands and options of each command, and the options' values. Read from
 * commander's tree.
 */
import type { Command, Option } from "commander";

/** An option's value: none, a file, one of these words, or anything else. */
export type Takes = "nothing" | "file" | "anything" | readonly string[];

export interface PlaceOption {
  readonly flags: readonly string[];
  readonly about: string;
  readonly takes: Takes;
}

export interface Place {
  /** `errand agent put` */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly about: string }[];
  readonly options: readonly PlaceOption[];
  /** The choices of the first argument. */
  readonly words: readonly string[];
}

export function placesOf(program: Command, above = "", inherited: readonly PlaceOption[] = []): Place[] {
  const path = above === "" ? program.name() : `${above} ${program.name()}`;
  const help = program.createHelp();
  const own = help.visibleOptions(program).map(toOption);
  const commands = program.commands.map((one) => ({ name: one.name(), about: one.description() }));
  const words = program.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  // Subcommands inherit all options but --help and --version.
  const passedOn = [...inherited, ...own].filter(
    ({ flags }) => !/^--(?:help|version)$/.test(flags.at(-1) ?? ""),
  );
  const place = { path, commands, options: [...own, ...inherited], words };
  return [place, ...program.commands.flatMap((one) => placesOf(one, path, passedOn))];
}

function toOption({ short, long, description, required, optional, argChoices, flags }: Option): PlaceOption {
  const takes =
    !required && !optional
      ? "nothing"
      : (argChoices ?? (/<(?:path|folder)>/.test(flags) ? "file" : "anything"));
  const own = [short, long].filter((flag) => flag !== undefined && flag !== null);
  return { flags: own, about: description, takes };
}
