/** The types of scripts/arguments.mjs, which scripts without a build need, too. */
declare module "*/scripts/arguments.mjs" {
  import type { ParseArgsConfig, parseArgs } from "node:util";

  type Options = NonNullable<ParseArgsConfig["options"]>;
  interface Config<T extends Options> {
    options: T & { help: { type: "boolean"; default: false } };
    allowPositionals: true;
  }
  type Parsed<T extends Options> = ReturnType<typeof parseArgs<Config<T>>>;

  export class WrongArguments extends Error {}
  export function parseArguments<const T extends Options>(
    args: readonly string[],
    options: T,
    more?: { readonly names?: boolean },
  ): Parsed<T>;
  export function unknownName(what: string, name: string, known: readonly string[]): WrongArguments;
  export function checkNames(what: string, names: readonly string[], known: readonly string[]): void;
  export function positive(option: string, text: string): number;
  export function orExit<T extends { readonly values: { readonly help?: boolean | undefined } }>(
    usage: string,
    read: () => T,
  ): T;
  export function readArguments<const T extends Options>(
    usage: string,
    options: T,
    more?: { readonly args?: readonly string[]; readonly names?: boolean },
  ): Parsed<T>;
}
/** The types of scripts/descriptions.mjs. */
declare module "*/scripts/descriptions.mjs" {
  export function collectDescriptions(): Promise<Readonly<Record<string, string>>>;
  export function withDescriptions(name: string, text: string): string;
}
