/**
 * What may be written where: for each command its subcommands, its options, and what they take.
 * Limit: read from commander's tree, so it knows what the help knows.
 */
import type { Command, Option } from "commander";

/** What follows: nothing, a file, one of these words, or something that only the user knows. */
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
  /** Words that the first argument may be. */
  readonly words: readonly string[];
}

export function placesOf(program: Command, above = "", inherited: readonly PlaceOption[] = []): Place[] {
  const path = above === "" ? program.name() : `${above} ${program.name()}`;
  const help = program.createHelp();
  const own = help.visibleOptions(program).map(toOption);
  const commands = program.commands.map((one) => ({ name: one.name(), about: one.description() }));
  const words = program.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  // What the program itself takes, every command takes: but for asking its version.
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
