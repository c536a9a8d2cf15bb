/** `errand notify`: subscriptions: create, list, get, change, test, resume, delete. */
import type { Command } from "commander";
import { Subscriptions } from "../../client/subscriptions.ts";
import type { Subscription } from "../../schema/subscription.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { exitCodeOf } from "../failure.ts";
import { SUBSCRIPTION, subscriptionId } from "../input/arguments.ts";
import { addTableOptions, type Column, printRows, type TableOptions } from "../show/list-table.ts";
import { oneLine, type Painter, print, printJson } from "../show/output.ts";
import { channelText, filterText, stateOf, subscriptionDetails } from "../show/subscription-text.ts";
import { addChangeNotify } from "./notify-change.ts";
import { addCreateNotify } from "./notify-create.ts";

export function addNotify(program: Command, cli: Cli): void {
  const notify = program
    .command("notify")
    .description("be notified of questions and ends on a phone, in Slack, by mail or webhook")
    .addHelpText(
      "after",
      examples("errand notify create --ntfy https://ntfy.sh/my-long-secret-topic", "errand notify list"),
    );
  addCreateNotify(notify, cli);
  addList(notify, cli);
  addGet(notify, cli);
  addChangeNotify(notify, cli);
  addTest(notify, cli);
  addResume(notify, cli);
  addDelete(notify, cli);
}

const statePaint = (subscription: Subscription, { green, yellow, red }: Painter) =>
  ({ ok: green, failing: yellow, paused: red })[stateOf(subscription)];

const waitingOf = ({ deliver }: Subscription): number =>
  deliver.reduce((sum, { waiting }) => sum + waiting, 0);

const SUBSCRIPTIONS: readonly Column<Subscription>[] = [
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id, isWhole: true },
  { name: "state", cell: stateOf, paint: statePaint },
  { name: "waiting", cell: (one) => String(waitingOf(one)) },
  { name: "channels", cell: ({ deliver }) => deliver.map(channelText).join("; "), isText: true },
  { name: "events", cell: ({ events }) => events.join(","), isText: true },
  { name: "only", cell: filterText, isText: true, shown: "wide" },
  { name: "owner", cell: ({ owner }) => owner, shown: "wide" },
  { name: "title", cell: ({ name }) => name ?? "-", isText: true, shown: "wide" },
];

function addList(notify: Command, { host }: Cli): void {
  const list = notify.command("list").description("list your subscriptions, or for the operator all");
  addTableOptions(list, SUBSCRIPTIONS)
    .addHelpText("after", examples("errand notify list --wide", "errand notify list --json | jq -r .id"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const found = await new Subscriptions(await connectToRead(host, options)).list();
      if (options.json) {
        for (const one of found) await printJson(host, one);
        return;
      }
      await printRows(host, found, SUBSCRIPTIONS, options, "no subscriptions yet");
    });
}

function addGet(notify: Command, { host }: Cli): void {
  notify
    .command("get")
    .description("show a subscription: what it notifies of, and the state of each channel")
    .argument("<id>", SUBSCRIPTION, subscriptionId)
    .addHelpText("after", examples("errand notify get sub_…", "errand notify get sub_… --json | jq .deliver"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const found = await new Subscriptions(await connectToRead(host, options)).get(id);
      await (options.json ? printJson(host, found) : print(host, subscriptionDetails(host, found)));
    });
}

function addTest(notify: Command, { host, end }: Cli): void {
  notify
    .command("test")
    .description("send one notification by each channel now; fails if one was not delivered")
    .argument("<id>", SUBSCRIPTION, subscriptionId)
    .addHelpText(
      "after",
      examples("errand notify test sub_…", "errand notify test sub_… --json | jq .deliver"),
    )
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const tested = await new Subscriptions(await connect(host, options)).test(id);
      const lines = tested.deliver.map(({ kind, problem }) =>
        oneLine(`${kind}: ${problem === null ? "delivered" : problem}`),
      );
      await (options.json ? printJson(host, tested) : print(host, lines.join("\n")));
      if (tested.deliver.some(({ delivered }) => !delivered)) end(exitCodeOf("TRANSPORT"));
    });
}

function addResume(notify: Command, { host }: Cli): void {
  notify
    .command("resume")
    .description("try failing and paused channels again, with what waits for them")
    .argument("<id>", SUBSCRIPTION, subscriptionId)
    .addHelpText("after", examples("errand notify resume sub_…", "errand notify resume sub_… --json"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const found = await new Subscriptions(await connect(host, options)).resume(id);
      const text = `resumed ${id}; ${waitingOf(found)} waiting`;
      await (options.json ? printJson(host, found) : print(host, text));
    });
}

function addDelete(notify: Command, { host }: Cli): void {
  notify
    .command("delete")
    .description("delete a subscription; what still waits is not sent")
    .argument("<id>", SUBSCRIPTION, subscriptionId)
    .addHelpText("after", examples("errand notify delete sub_…", "errand notify delete sub_… --json"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await new Subscriptions(await connect(host, options)).delete(id);
      await (options.json ? printJson(host, { deleted: id }) : print(host, `deleted ${id}`));
    });
}
