/** The options of `errand work --acp`. */
import { type Command, InvalidArgumentError } from "commander";
import { duration } from "../../input/duration.ts";
import { type ModeChoice, unapproved } from "./mode.ts";

export interface AcpFlags {
  readonly acp?: boolean;
  readonly acpStartTimeout?: number;
  readonly acpMode?: string;
  readonly acpConfig?: readonly (readonly [id: string, value: string])[];
  readonly allowUnapprovedTools?: boolean;
  readonly hold?: number;
}

const START_SECONDS = 120;
const HOLD_SECONDS = 300;

export const withAcpOptions = (command: Command): Command =>
  command
    .option("--acp", "the command is an agent that speaks the Agent Client Protocol, such as 'gemini --acp'")
    .option("--acp-start-timeout <duration>", "how long the agent may take to start (default 2m)", duration)
    .option("--acp-mode <mode>", "the agent's mode (default: the one in which it asks before it uses a tool)")
    .option("--acp-config <id=value>", "set an option of the agent, such as model=fast; repeatable", configs)
    .option(
      "--hold <duration>",
      "how long the agent waits for an answer before its process ends, or 0 (default 5m)",
      (text) => (text === "0" ? 0 : duration(text)),
    )
    .option(
      "--allow-unapproved-tools",
      "accept an --acp-mode or --acp-config with which the agent runs tools that nobody approved",
    );

function configs(
  given: string,
  before: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  const at = given.indexOf("=");
  if (at <= 0) throw new InvalidArgumentError("Pass the option's id and its value: model=fast.");
  return [...before, [given.slice(0, at), given.slice(at + 1)]];
}

/** Undefined without --acp. Throws if options do not go together. */
export function acpChoice(
  flags: AcpFlags,
  preset: string | undefined,
): { readonly choice: ModeChoice; readonly startTimeoutMs: number; readonly holdMs: number } | undefined {
  const { acp, acpMode: mode, acpConfig: config = [], hold = HOLD_SECONDS } = flags;
  const { acpStartTimeout = START_SECONDS } = flags;
  if (!acp) {
    const used =
      Object.keys(flags).some((name) => name.startsWith("acp")) ||
      flags.allowUnapprovedTools ||
      flags.hold !== undefined;
    if (used)
      throw new InvalidArgumentError(
        "--acp-start-timeout, --acp-mode, --acp-config, --hold and --allow-unapproved-tools require --acp.",
      );
    return undefined;
  }
  if (preset !== undefined) throw new InvalidArgumentError("--acp and --preset exclude each other.");
  const bypass = unapproved({ mode, config });
  if (bypass !== undefined && !flags.allowUnapprovedTools)
    throw new InvalidArgumentError(
      `With ${bypass}, the agent may run tools that nobody approved. If that is what you want, add --allow-unapproved-tools.`,
    );
  return { choice: { mode, config }, startTimeoutMs: acpStartTimeout * 1000, holdMs: hold * 1000 };
}
