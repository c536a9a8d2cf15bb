/** `errand notify create`. */
import { type Command, InvalidArgumentError } from "commander";
import { ErrandApiError } from "../../client/errors.ts";
import { Subscriptions } from "../../client/subscriptions.ts";
import { stateSchema } from "../../schema/delegation.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { type NoticeKind, noticeSchema } from "../../schema/notice.ts";
import { subscriptionRequestSchema } from "../../schema/subscription.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import { separated, wholeBetween } from "../input/arguments.ts";
import { addChannelOptions, type Channels } from "../input/channels.ts";
import { duration } from "../input/duration.ts";
import { note, print, printJson } from "../show/output.ts";

interface CreateOptions extends GlobalOptions {
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

const ABOUT = `
--after, --secret-… and --token-… belong to the channel before them. Secrets are never shown again.

You are notified of questions that you may answer, of the end of what you delegated, and, unless you are a caller, of work
that waits without a worker. The text is the agent's name, that it asks, and until when it waits, unless the operator allows
more ('errand agent put --notify-contents'). A subscription works as long as your token is valid.`;

const DEFAULT_EVENTS: readonly NoticeKind[] = ["question", "question_expiring", "question_expired"];

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

export function addCreateNotify(notify: Command, { host }: Cli): void {
  const create = notify
    .command("create")
    .description("create a subscription: from now on, notify me by these channels; prints its id")
    .option(
      "--on <events>",
      `what to be notified of, separated by commas: ${noticeSchema.options.join(", ")} (default: ${DEFAULT_EVENTS.join(",")})`,
      separated(noticeSchema.options, events),
    );
  const channels = addChannelOptions(create);
  create
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
    .option("--name <text>", "a name for people")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand notify create --ntfy https://ntfy.sh/my-long-secret-topic",
        "errand notify create --on question,ended --slack-env SLACK_URL --email ann@example.com --after 10m",
        "errand notify create --on no_worker --webhook https://ci.example/start --token-env CI_TOKEN --agent scout",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CreateOptions>();
      const nameOf = (path: string) => optionFor(path, channels.optionOf);
      const input = inputOf(options, await channels.read(host), nameOf);
      const subscriptions = new Subscriptions(await connect(host, options));
      const made = await subscriptions.create(input).catch((error: unknown) => {
        throw withOption(error, nameOf);
      });
      if (options.json) return printJson(host, made);
      await print(host, made.id);
      await note(host, `send a test with 'errand notify test ${made.id}'`);
    });
}

/** The options of the members of a subscription, besides its channels. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...{ name: "--name", events: "--on", deliver: "the channels", quiet: "--quiet" },
  ...{ "filter.agents": "--agent", "filter.delegators": "--delegator", "filter.states": "--state" },
  ...{ "quiet.time_zone": "--zone", digest_above: "--digest-above", every_seconds: "--every" },
};

/** The option that a path within the subscription comes from, such as `--ntfy` for `deliver.0.url`; else the path itself. */
function optionFor(path: string, channelOption: Channels["optionOf"]): string {
  const [head = "", place, member = ""] = path.split(".");
  const known = OPTIONS[`${head}.${place}`] ?? OPTIONS[head] ?? path;
  return head === "deliver" && place !== undefined ? (channelOption(Number(place), member) ?? known) : known;
}

/** The broker's refusal, which begins with a path, with the option in place of the path. */
function withOption(error: unknown, nameOf: (path: string) => string): unknown {
  if (!(error instanceof ErrandApiError) || error.code !== "invalid_request") return error;
  const { problem } = error;
  const [path = ""] = problem.detail.split(": ", 1);
  if (!/^[a-z_.\d]+$/.test(path) || path === problem.detail) return error;
  const detail = `${nameOf(path)}${problem.detail.slice(path.length)}`;
  return new ErrandApiError({ ...problem, detail }, { cause: error.cause });
}

/** Checked here, because a refusal of the broker names members of JSON. */
function inputOf(options: CreateOptions, deliver: readonly object[], nameOf: (path: string) => string) {
  const { on = DEFAULT_EVENTS, agent, delegator, state, quiet, zone, digestAbove, every, name } = options;
  if (deliver.length === 0)
    throw usageError("there is no channel", "Give --ntfy, --email, --slack or --webhook.");
  if (quiet && zone === undefined)
    throw usageError("--quiet requires --zone", "For example --zone Europe/Berlin.");
  if (zone !== undefined && !quiet) throw usageError("--zone requires --quiet");
  const unknown = state?.find((one) => !stateSchema.safeParse(one).success);
  if (unknown !== undefined)
    throw usageError(`'${unknown}' is not a state`, "Use completed, failed, canceled or rejected.");
  const read = readAs(subscriptionRequestSchema, {
    ...(name !== undefined && { name }),
    events: on,
    filter: {
      ...(agent && { agents: agent }),
      ...(delegator && { delegators: delegator }),
      ...(state && { states: state }),
    },
    deliver,
    ...(quiet && { quiet: { ...quiet, time_zone: zone } }),
    ...(digestAbove !== undefined && { digest_above: digestAbove }),
    ...(every !== undefined && { every_seconds: every }),
  });
  if (read.success) return read.data;
  const { issues, text } = issuesOf(read.error, { whole: "the subscription" });
  const [first] = issues;
  throw usageError(first?.path ? `${nameOf(first.path)}: ${first.reason}` : text);
}
