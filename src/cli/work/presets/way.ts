/**
 * How the program of a preset is run: as an agent whose tool calls a person approves, or headless, where nobody can be
 * asked.
 */
import { findCommand } from "../find-command.ts";
import type { Preset } from "./preset.ts";
import { installText, PROGRAMS, type PresetName, type Program } from "./programs.ts";

export const ASKS = ["hold", "park", "none"] as const;
export type Ask = (typeof ASKS)[number];

export interface AcpWay {
  readonly kind: "acp";
  readonly command: readonly [string, ...string[]];
  /** Its variables, besides those of the worker. */
  readonly env: Readonly<Record<string, string>>;
  /** It asks in each of its modes. */
  readonly asksItself: boolean;
  /** What to do if the program is missing. */
  readonly install: string;
}

export interface HeadlessWay {
  readonly kind: "headless";
  readonly preset: Preset;
  readonly install: string;
  /** Why nobody is asked, for the person who runs the worker. */
  readonly note?: string;
}

interface Choice {
  readonly ask?: Ask;
  readonly allowUnapprovedTools?: boolean;
}

/** `words`: the arguments for the program. `path`: where programs are looked for. */
export async function wayOf(
  preset: PresetName,
  { ask, allowUnapprovedTools = false }: Choice,
  words: readonly string[],
  path: string | undefined,
): Promise<AcpWay | HeadlessWay> {
  const program: Program = PROGRAMS[preset];
  const { acp, signIn } = program;
  const headless: HeadlessWay = {
    kind: "headless",
    preset: program.headless,
    install: installText(program.headless.name, program.package, signIn),
  };
  // Claude Code asks by a protocol of its own.
  if (acp === undefined || ask === "none") return headless;
  const { adapter, command, asksBy = {} } = acp;
  const [start, ...args] = command;
  if (adapter !== undefined && ask === undefined) {
    const name = program.headless.name;
    const isThere = (await findCommand(start, path)) !== undefined;
    const why = isThere
      ? `with arguments after '--', ${name} runs headless and nobody can be asked; they are for '${start}' with --ask hold.`
      : `${name} runs headless, so nobody can be asked; to be asked, install its adapter with 'npm install -g ${adapter.name}'.`;
    if (!isThere || words.length > 0) return { ...headless, note: why };
  }
  const asksItself = acp.asksBy !== undefined;
  return {
    kind: "acp",
    command: [start, ...args, ...words],
    env: allowUnapprovedTools ? {} : asksBy,
    asksItself: asksItself && !allowUnapprovedTools,
    install: adapter ? installText(start, adapter, signIn) : headless.install,
  };
}
