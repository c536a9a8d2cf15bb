/** `errand notify create`. */
import type { Command } from "commander";
import { Subscriptions } from "../../client/subscriptions.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { subscriptionRequestSchema } from "../../schema/subscription.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import {
  addSubscriptionOptions,
  DEFAULT_EVENTS,
  optionsOf,
  type SubscriptionOptions,
  settingsIn,
  unfit,
  withOption,
} from "../input/subscription-options.ts";
import { note, print, printJson } from "../show/output.ts";

const ABOUT = `
--after, --secret-… and --token-… belong to the channel before them. Secrets are never shown again.

You are notified of questions that you may answer, of the end of what you delegated, and, unless you are a caller, of work
that waits without a worker. The text is the agent's name, that it asks, and until when it waits, unless the operator allows
more ('errand agent put --notify-contents'). A subscription works as long as your token is valid.`;

export function addCreateNotify(notify: Command, { host }: Cli): void {
  const create = notify
    .command("create")
    .description("create a subscription: from now on, notify me by these channels; prints its id");
  const channels = addSubscriptionOptions(create);
  create
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
      const options = command.optsWithGlobals<SubscriptionOptions & GlobalOptions>();
      const nameOf = optionsOf(channels);
      const deliver = await channels.read(host);
      if (deliver.length === 0)
        throw usageError("there is no channel", "Give --ntfy, --email, --slack or --webhook.");
      const { own, filter } = settingsIn(options);
      const read = readAs(subscriptionRequestSchema, { events: DEFAULT_EVENTS, ...own, filter, deliver });
      if (!read.success) throw unfit(issuesOf(read.error, { whole: "the subscription" }), nameOf);
      const subscriptions = new Subscriptions(await connect(host, options));
      const made = await subscriptions.create(read.data).catch((error: unknown) => {
        throw withOption(error, nameOf);
      });
      if (options.json) return printJson(host, made);
      await print(host, made.id);
      await note(host, `send a test with 'errand notify test ${made.id}'`);
    });
}
