/** `errand notify change`. Limit: the filter is read and sent back whole, so of two changes at once one is lost. */
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
import { SUBSCRIPTION, subscriptionId } from "../input/arguments.ts";
import {
  addSubscriptionOptions,
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
  const channels = addSubscriptionOptions(change, () => "");
  change
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
      const resets = known(options.reset ?? []);
      const deliver = await channels.read(host);
      const { own, filter } = settingsIn(options);
      const changesFilter = Object.keys(filter).length > 0 || OF_FILTER.some((name) => resets.includes(name));
      const settings = {
        ...Object.fromEntries(Object.entries(DEFAULTS).filter(([name]) => resets.includes(name))),
        ...own,
        ...(deliver.length > 0 && { deliver }),
        ...(changesFilter && { filter }),
      };
      if (Object.keys(settings).length === 0) throw usageError("nothing to change", "Pass an option.");
      const read = readAs(subscriptionPatchSchema, settings);
      if (!read.success) throw unfit(issuesOf(read.error, { whole: "the change" }), nameOf);
      const subscriptions = new Subscriptions(await connect(host, options));
      const patch = changesFilter
        ? { ...read.data, filter: changedFilter(await subscriptions.get(id), read.data.filter, resets) }
        : read.data;
      const changed = await subscriptions.update(id, patch).catch((error: unknown) => {
        throw withOption(error, nameOf);
      });
      await (options.json ? printJson(host, changed) : print(host, subscriptionDetails(host, changed)));
    });
}

type Filter = Subscription["filter"];

/** What it was before, with the changes. */
function changedFilter(
  { filter: before }: Subscription,
  changes: Filter = {},
  resets: readonly string[],
): Filter {
  const kept = Object.fromEntries(Object.entries(before).filter(([name]) => !resets.includes(name)));
  return { ...kept, ...changes };
}

function known(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !RESETTABLE.includes(name));
  if (unknown === undefined) return names;
  const nearest = nearestName(unknown, RESETTABLE);
  throw usageError(
    `--reset: '${unknown}' is no setting of a subscription that can be reset`,
    nearest === undefined ? `They are ${RESETTABLE.join(", ")}.` : `Did you mean ${nearest}?`,
  );
}
