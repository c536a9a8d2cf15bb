/** `errand rules`: standing approvals and denials: create, list, get, revoke. */
import type { Command } from "commander";
import { argumentsText, usesText } from "../../client/rule-words.ts";
import { Rules } from "../../client/rules.ts";
import { RULE_ID, type Rule } from "../../schema/rule.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { agentName, wrongId } from "../input/arguments.ts";
import { addTableOptions, type Column, printRows, type TableOptions } from "../show/list-table.ts";
import { type Painter, print, printJson } from "../show/output.ts";
import { ruleDetails } from "../show/rule-text.ts";
import { localTime, whenText } from "../show/time.ts";
import { addCreateRule } from "./rules-create.ts";

export function addRules(program: Command, cli: Cli): void {
  const rules = program
    .command("rules")
    .description(
      "rules that answer: standing approvals and denials of an agent's actions, for a time or a number of uses",
    )
    .addHelpText(
      "after",
      examples("errand rules create scout fs.write --path path=/srv/site --for 20m", "errand rules list"),
    );
  addCreateRule(rules, cli);
  addList(rules, cli);
  addGet(rules, cli);
  addRevoke(rules, cli);
}

const ID = "the rule's id, from 'errand rules list'";

function ruleId(value: string): string {
  if (RULE_ID.test(value)) return value;
  throw wrongId(value, "rul_", "a rule", "errand rules list");
}

const statePaint = ({ state }: Rule, { green, yellow }: Painter) => (state === "active" ? green : yellow);

const RULES: readonly Column<Rule>[] = [
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id, isWhole: true },
  { name: "state", cell: ({ state }) => state, paint: statePaint },
  { name: "agent", cell: ({ agent }) => agent },
  { name: "decision", cell: ({ decision }) => decision },
  { name: "action", cell: ({ action }) => action, isText: true },
  { name: "uses", cell: usesText },
  {
    name: "until",
    cell: ({ expires_at }, wide) => (expires_at === null ? "revoked" : whenText(expires_at, wide)),
  },
  { name: "arguments", cell: argumentsText, isText: true, shown: "wide" },
  { name: "last", cell: ({ last_uses: [use] }) => (use ? localTime(use.at) : "-"), shown: "wide" },
  { name: "by", cell: ({ by }) => by, shown: "wide" },
  { name: "note", cell: ({ note }) => note ?? "-", isText: true, shown: "wide" },
];

interface ListOptions extends TableOptions {
  readonly agent?: string;
}

function addList(rules: Command, { host }: Cli): void {
  const list = rules
    .command("list")
    .description("list your rules with their uses, or for the operator all")
    .option("--agent <name>", "only those for this agent", agentName);
  addTableOptions(list, RULES)
    .addHelpText("after", examples("errand rules list --wide", "errand rules list --json | jq -r .id"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ListOptions>();
      const found = await new Rules(await connectToRead(host, options)).list({ agent: options.agent });
      if (options.json) {
        for (const one of found) await printJson(host, one);
        return;
      }
      await printRows(host, found, RULES, options, "no rules yet");
    });
}

function addGet(rules: Command, { host }: Cli): void {
  rules
    .command("get")
    .description("show a rule: what it says, whether it is active, its newest uses")
    .argument("<id>", ID, ruleId)
    .addHelpText("after", examples("errand rules get rul_…"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const found = await new Rules(await connectToRead(host, options)).get(id);
      await (options.json ? printJson(host, found) : print(host, ruleDetails(host, found)));
    });
}

function addRevoke(rules: Command, { host }: Cli): void {
  rules
    .command("revoke")
    .description("revoke a rule at once; it stays in the list for a time, with its uses")
    .argument("<id>", ID, ruleId)
    .addHelpText("after", examples("errand rules revoke rul_…"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await new Rules(await connect(host, options)).revoke(id);
      await (options.json ? printJson(host, { revoked: id }) : print(host, `revoked ${id}`));
    });
}
