/** The options of agents that ask: `errand work --acp`, and the presets. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { duration } from "../../input/duration.ts";
import { ASKS, type Ask } from "../presets/way.ts";
import type { AskTimes } from "./approvals.ts";
import { type ModeChoice, unapproved } from "./mode.ts";

export interface AcpFlags {
  readonly acp?: boolean;
  readonly acpStartTimeout?: number;
  readonly acpMode?: string;
  readonly acpConfig?: readonly (readonly [id: string, value: string])[];
  readonly allowUnapprovedTools?: boolean;
  readonly hold?: number;
  readonly sticky?: number;
  readonly ask?: Ask;
}

const START_SECONDS = 120;
export const HOLD_SECONDS = 300;
export const STICKY_SECONDS = 30;

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
    .addOption(
      new Option(
        "--ask <how>",
        "with --preset, how to ask a person: keep the process (hold), end it until the answer (park), or do not ask (none)",
      ).choices(ASKS),
    )
    .option(
      "--sticky <duration>",
      "how long after a later answer only this worker gets the delegation, or 0 (default 30s, at most 1h)",
      stickyDuration,
    )
    .option(
      "--allow-unapproved-tools",
      "accept an --acp-mode or --acp-config with which the agent runs tools that nobody approved",
    );

function stickyDuration(text: string): number {
  const seconds = text === "0" ? 0 : duration(text);
  if (seconds > 3600) throw new InvalidArgumentError("It is at most 1h.");
  return seconds;
}

function configs(
  given: string,
  before: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  const at = given.indexOf("=");
  if (at <= 0) throw new InvalidArgumentError("Pass the option's id and its value: model=fast.");
  return [...before, [given.slice(0, at), given.slice(at + 1)]];
}

export interface AcpChoice extends AskTimes {
  readonly choice: ModeChoice;
  readonly startTimeoutMs: number;
}

/** `speaks`: the preset's program is run as such an agent. Throws if options do not go together. */
export function acpChoice(
  flags: AcpFlags,
  preset: string | undefined,
  speaks: boolean,
): AcpChoice | undefined {
  const { acp, acpMode: mode, acpConfig: config = [], ask } = flags;
  const { acpStartTimeout = START_SECONDS, sticky = STICKY_SECONDS } = flags;
  const { hold = ask === "park" ? 0 : HOLD_SECONDS } = flags;
  if (ask !== undefined && (preset === undefined || preset === "shell"))
    throw new InvalidArgumentError("--ask requires a preset that asks.");
  if (ask === "park" && hold > 0) throw new InvalidArgumentError("--ask park and --hold exclude each other.");
  if (!acp && !speaks) {
    const used =
      Object.keys(flags).some((name) => name.startsWith("acp")) ||
      flags.allowUnapprovedTools ||
      ((flags.hold !== undefined || flags.sticky !== undefined) && preset !== "claude");
    if (used)
      throw new InvalidArgumentError(
        "--acp-start-timeout, --acp-mode, --acp-config, --hold, --sticky and --allow-unapproved-tools require --acp, or a preset that asks.",
      );
    return undefined;
  }
  if (acp && preset !== undefined) throw new InvalidArgumentError("--acp and --preset exclude each other.");
  const bypass = unapproved({ mode, config });
  if (bypass !== undefined && !flags.allowUnapprovedTools)
    throw new InvalidArgumentError(
      `With ${bypass}, the agent may run tools that nobody approved. If that is what you want, add --allow-unapproved-tools.`,
    );
  return {
    choice: { mode, config },
    startTimeoutMs: acpStartTimeout * 1000,
    holdMs: hold * 1000,
    stickyMs: sticky * 1000,
  };
}
