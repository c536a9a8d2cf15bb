/**
 * `errand notify change`. Limit: the filter and the quiet hours are read and sent back whole, so of two changes at once one is
 * lost.
 */
import type { Command } from "commander";
import { Subscriptions } from "../../client/subscriptions.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import {
  type Subscription,
  subscriptionPatchSchema,
  subscriptionRequestSchema,
} from "../../schema/subscription.ts";
import { nearestName } from "../../util/similar.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import { SUBSCRIPTION, subscriptionId, withoutDefaults } from "../input/arguments.ts";
import {
  addSubscriptionOptions,
  type OptionOf,
  optionsOf,
  type SubscriptionOptions,
  settingsIn,
  unfit,
  withOption,
} from "../input/subscription-options.ts";
import { print, printJson } from "../show/output.ts";
import { subscriptionDetails } from "../show/subscription-text.ts";

interface ChangeOptions extends SubscriptionOptions, GlobalOptions {
  readonly reset?: readonly string[];
}

const ABOUT = `
Channels that are given replace all that there are, because their secrets cannot be read again. What waits for a channel goes
to the new one in its place, and is not sent if there is none. --after, --secret-… and --token-… belong to the channel before
them.`;

/** The default of each setting that can be reset, besides the filter. */
const { digest_above, every_seconds } = subscriptionRequestSchema.shape;
const DEFAULTS = {
  ...{ name: null, quiet: null },
  ...{ digest_above: digest_above.parse(undefined), every_seconds: every_seconds.parse(undefined) },
} as const;
const OF_FILTER = ["agents", "delegators", "states"] as const;
const RESETTABLE: readonly string[] = [...Object.keys(DEFAULTS), ...OF_FILTER];

export function addChangeNotify(notify: Command, { host }: Cli): void {
  const change = notify
    .command("change")
    .description("change a subscription of yours; what is not given stays")
    .argument("<id>", SUBSCRIPTION, subscriptionId);
  const channels = addSubscriptionOptions(change);
  withoutDefaults(change)
    .option(
      "--reset <settings...>",
      `reset these settings to their defaults: ${RESETTABLE.slice(0, -1).join(", ")} or ${RESETTABLE.at(-1)}`,
    )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand notify change sub_… --quiet 22:00-07:00 --zone Europe/Berlin",
        "errand notify change sub_… --on question,ended --state failed",
        "errand notify change sub_… --email ann@example.com --reset agents quiet",
      ),
    )
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ChangeOptions>();
      const nameOf = optionsOf(channels);
      const resets = known(options, nameOf);
      const deliver = await channels.read(host);
      const subscriptions = new Subscriptions(await connect(host, options));
      const before = needsBefore(options, resets) ? await subscriptions.get(id) : undefined;
      const { own, filter } = settingsIn(withQuietOf(before, options));
      const settings = {
        ...Object.fromEntries(Object.entries(DEFAULTS).filter(([name]) => resets.includes(name))),
        ...own,
        ...(deliver.length > 0 && { deliver }),
        ...(changesFilter(options, resets) && { filter: changedFilter(before, filter, resets) }),
      };
      if (Object.keys(settings).length === 0) throw usageError("nothing to change", "Pass an option.");
      const read = readAs(subscriptionPatchSchema, settings);
      if (!read.success) throw unfit(issuesOf(read.error, { whole: "the change" }), nameOf);
      const patch = read.data;
      const changed = await subscriptions.update(id, patch).catch((error: unknown) => {
        throw withOption(error, nameOf);
      });
      await (options.json ? printJson(host, changed) : print(host, subscriptionDetails(host, changed)));
    });
}

const changesFilter = (
  { agent, delegator, state }: SubscriptionOptions,
  resets: readonly string[],
): boolean =>
  [agent, delegator, state].some((given) => given !== undefined) ||
  OF_FILTER.some((name) => resets.includes(name));

/** Whether a part of a setting changes, which is sent whole. */
const needsBefore = (options: SubscriptionOptions, resets: readonly string[]): boolean =>
  changesFilter(options, resets) || (options.quiet === undefined) !== (options.zone === undefined);

/** Of the quiet hours, what is not given stays. */
function withQuietOf(before: Subscription | undefined, options: SubscriptionOptions): SubscriptionOptions {
  const [quiet, zone] = [options.quiet ?? before?.quiet, options.zone ?? before?.quiet?.time_zone];
  if (options.quiet === undefined && options.zone === undefined) return options;
  return { ...options, ...(quiet && { quiet }), ...(zone !== undefined && { zone }) };
}

/** What it was before, with the changes. */
function changedFilter(
  before: Subscription | undefined,
  changes: Subscription["filter"] | object,
  resets: readonly string[],
): object {
  const kept = Object.entries(before?.filter ?? {}).filter(([name]) => !resets.includes(name));
  return { ...Object.fromEntries(kept), ...changes };
}

/** The settings to reset. Throws for one that there is not, or that is also set. */
function known(options: ChangeOptions, nameOf: OptionOf): readonly string[] {
  const { reset: names = [], name, quiet, zone, digestAbove, every, agent, delegator, state } = options;
  const given: Readonly<Record<string, unknown>> = {
    ...{ name, quiet: quiet ?? zone, digest_above: digestAbove, every_seconds: every },
    ...{ agents: agent, delegators: delegator, states: state },
  };
  for (const one of names) {
    if (!RESETTABLE.includes(one)) {
      const nearest = nearestName(one, RESETTABLE);
      throw usageError(
        `--reset: '${one}' is no setting of a subscription that can be reset`,
        `${nearest === undefined ? "" : `Did you mean ${nearest}? `}They are ${RESETTABLE.join(", ")}.`,
      );
    }
    if (given[one] === undefined) continue;
    const option = nameOf(OF_FILTER.some((part) => part === one) ? `filter.${one}` : one);
    throw usageError(`${option} sets what --reset ${one} resets`, "Give one of them.");
  }
  return names;
}
