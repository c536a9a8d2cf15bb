/** The options of a subscription besides its channels, for `errand notify create` and `change`. */
import { type Command, InvalidArgumentError } from "commander";
import { ErrandApiError } from "../../client/errors.ts";
import { TERMINAL_STATES } from "../../schema/delegation.ts";
import type { Issues } from "../../schema/issues.ts";
import { type NoticeKind, noticeSchema } from "../../schema/notice.ts";
import { usageError } from "../failure.ts";
import { separated, wholeBetween } from "./arguments.ts";
import { addChannelOptions, type Channels } from "./channels.ts";
import { duration } from "./duration.ts";

export interface SubscriptionOptions {
  readonly on?: NoticeKind[];
  readonly agent?: string[];
  readonly delegator?: string[];
  readonly state?: string[];
  readonly quiet?: { readonly from: string; readonly to: string };
  readonly zone?: string;
  readonly digestAbove?: number;
  readonly every?: number;
  readonly name?: string;
}

function events(text: string): NoticeKind[] {
  return text.split(",").map((word) => {
    const event = noticeSchema.options.find((known) => known === word.trim());
    if (event) return event;
    throw new InvalidArgumentError(`'${word}' is not one of ${noticeSchema.options.join(", ")}.`);
  });
}

function quietHours(text: string): { readonly from: string; readonly to: string } {
  const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
  if (from !== undefined && to !== undefined) return { from, to };
  throw new InvalidArgumentError("It must be two times of the day, for example 22:00-07:00.");
}

/** What a subscription notifies of unless the options say it. */
export const DEFAULT_EVENTS: readonly NoticeKind[] = ["question", "question_expiring", "question_expired"];

export function addSubscriptionOptions(command: Command): Channels {
  command.option(
    "--on <events>",
    `what to be notified of, separated by commas: ${noticeSchema.options.join(", ")} (default: ${DEFAULT_EVENTS.join(",")})`,
    separated(noticeSchema.options, events),
  );
  const channels = addChannelOptions(command);
  command
    .option("--agent <names...>", "notify only of these agents")
    .option(
      "--delegator <principals...>",
      "notify only of what these principals delegated, for example caller:ci",
    )
    .option("--state <states...>", "of ended: only these states, for example failed")
    .option(
      "--quiet <hours>",
      "send nothing at these times, for example 22:00-07:00; requires --zone",
      quietHours,
    )
    .option("--zone <name>", "the time zone of --quiet, for example Europe/Berlin")
    .option(
      "--digest-above <n>",
      "when more notifications than this are due, they are sent as one (default: 10)",
      wholeBetween(1, 100),
    )
    .option(
      "--every <duration>",
      "of no_worker: at most one for each agent in this time (default: 5m)",
      duration,
    )
    .option("--name <text>", "a name for people");
  return channels;
}

/** The settings that the options give. Checked here as far as a refusal of the broker would name members of JSON. */
export function settingsIn(options: SubscriptionOptions) {
  const { on, agent, delegator, state, quiet, zone, digestAbove, every, name } = options;
  if (quiet && zone === undefined)
    throw usageError("--quiet requires --zone", "For example --zone Europe/Berlin.");
  if (zone !== undefined && !quiet) throw usageError("--zone requires --quiet");
  if (quiet && quiet.from === quiet.to)
    throw usageError("--quiet: both times are the same", "For example --quiet 22:00-07:00.");
  const other = state?.find((one) => !TERMINAL_STATES.some((end) => end === one));
  if (other !== undefined)
    throw usageError(`--state: nothing ends as '${other}'`, "Use completed, failed, canceled or rejected.");
  return {
    own: {
      ...(name !== undefined && { name }),
      ...(on && { events: on }),
      ...(quiet && { quiet: { ...quiet, time_zone: zone } }),
      ...(digestAbove !== undefined && { digest_above: digestAbove }),
      ...(every !== undefined && { every_seconds: every }),
    },
    filter: {
      ...(agent && { agents: agent }),
      ...(delegator && { delegators: delegator }),
      ...(state && { states: state }),
    },
  };
}

/** The options of the members of a subscription, besides its channels. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...{ name: "--name", events: "--on", deliver: "the channels", quiet: "--quiet" },
  ...{ "filter.agents": "--agent", "filter.delegators": "--delegator", "filter.states": "--state" },
  ...{ "quiet.time_zone": "--zone", digest_above: "--digest-above", every_seconds: "--every" },
};

export type OptionOf = (path: string) => string;

/** The option that a path within the subscription comes from, such as `--ntfy` for `deliver.0.url`; else the path itself. */
export const optionsOf =
  ({ optionOf }: Channels): OptionOf =>
  (path) => {
    const [head = "", place, member = ""] = path.split(".");
    const known = OPTIONS[`${head}.${place}`] ?? OPTIONS[head] ?? path;
    return head === "deliver" && place !== undefined ? (optionOf(Number(place), member) ?? known) : known;
  };

/** What does not fit, with the option that it comes from. */
export function unfit({ issues, text }: Issues, nameOf: OptionOf): Error {
  const [first] = issues;
  return usageError(first?.path ? `${nameOf(first.path)}: ${first.reason}` : text);
}

/** The broker's refusal, which begins with a path, with the option in place of the path. */
export function withOption(error: unknown, nameOf: OptionOf): unknown {
  if (!(error instanceof ErrandApiError) || error.code !== "invalid_request") return error;
  const { problem } = error;
  const [path = ""] = problem.detail.split(": ", 1);
  if (!/^[a-z_.\d]+$/.test(path) || path === problem.detail) return error;
  const detail = `${nameOf(path)}${problem.detail.slice(path.length)}`;
  return new ErrandApiError({ ...problem, detail }, { cause: error.cause });
}
