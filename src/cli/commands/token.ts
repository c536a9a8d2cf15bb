/** `errand token`: creates, lists and revokes tokens. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { periodsText } from "../../client/period-budgets.ts";
import type { PeriodBudgets } from "../../schema/budget.ts";
import type { TokenInfo } from "../../schema/token.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { wholeBetween } from "../input/arguments.ts";
import { periodBudget } from "../input/budget.ts";
import { duration } from "../input/duration.ts";
import { addTableOptions, ageColumn, type Column, printRows, type TableOptions } from "../show/list-table.ts";
import { note, print, printJson } from "../show/output.ts";
import { localTime } from "../show/time.ts";

export function addToken(program: Command, cli: Cli): void {
  const token = program
    .command("token")
    .description("create, list and revoke bearer tokens (operator only)")
    .addHelpText("after", examples("errand token create caller:alice", "errand token list"));
  addCreate(token, cli);
  addListTokens(token, cli);
  addRevoke(token, cli);
}

interface CreateOptions extends GlobalOptions {
  readonly expires?: number;
  readonly maxPriority?: number;
  readonly budgetDay?: PeriodBudgets["day"];
  readonly budgetMonth?: PeriodBudgets["month"];
}

const budgetsOf = ({ budgetDay: day, budgetMonth: month }: CreateOptions): PeriodBudgets | undefined =>
  day || month ? { day, month } : undefined;

function addCreate(token: Command, { host }: Cli): void {
  token
    .command("create")
    .description("create a token; it is shown only once")
    .argument("<principal>", "agent:<name>, caller:<name>, approver:<name> or viewer:<name>")
    .option("--expires <duration>", "how long it is valid (default: forever)", duration)
    .option("--max-priority <n>", "the highest priority that it may delegate with", wholeBetween(0, 9))
    .option(
      "--budget-day <amounts>",
      "what its work may use in a day (UTC) before new work is refused, for example cost=20USD,tokens=2000000",
      periodBudget,
    )
    .option("--budget-month <amounts>", "the same in a month of the calendar", periodBudget)
    .addHelpText(
      "after",
      examples(
        "ERRAND_TOKEN=$(errand token create agent:scout)",
        "errand token create caller:ci --expires 90d",
        "errand token create caller:batch --max-priority 3",
        "errand token create caller:team --budget-day cost=20USD --budget-month cost=300USD",
      ),
    )
    .action(async (principal: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CreateOptions>();
      const admin = new Admin(await connect(host, options));
      const created = await admin.createToken(principal, {
        expiresInSeconds: options.expires,
        maxPriority: options.maxPriority,
        budgets: budgetsOf(options),
      });
      if (options.json) return printJson(host, created);
      await print(host, created.token);
      if (host.isTty.stdout)
        await note(host, `created ${created.id} for ${created.principal}; the token is shown only once.`);
    });
}

const COLUMNS: readonly Column<TokenInfo>[] = [
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id, isWhole: true },
  { name: "principal", cell: ({ principal }) => principal },
  ageColumn("age", ({ created_at }) => created_at),
  { name: "expires", cell: ({ expires_at }) => (expires_at === null ? "never" : localTime(expires_at)) },
  { name: "max-priority", cell: ({ max_priority }) => String(max_priority ?? "-"), shown: "wide" },
  { name: "budgets", cell: ({ budgets }) => periodsText(budgets) || "-", shown: "wide" },
];

function addListTokens(token: Command, { host }: Cli): void {
  const list = token.command("list").description("list all tokens, without their secrets");
  addTableOptions(list, COLUMNS)
    .addHelpText("after", examples("errand token list", "errand token list --json | jq -r .principal"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const tokens = await new Admin(await connectToRead(host, options)).listTokens();
      if (options.json) {
        for (const one of tokens) await printJson(host, one);
        return;
      }
      await printRows(host, tokens, COLUMNS, options, "no tokens yet");
    });
}

function addRevoke(token: Command, { host }: Cli): void {
  token
    .command("revoke")
    .description("revoke a token; its sessions, open streams and polls end within a second")
    .argument("<id>", "the token's id, from 'errand token list'")
    .addHelpText("after", examples("errand token revoke 5rqd0w8h1v"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await new Admin(await connect(host, options)).revokeToken(id);
      await (options.json ? printJson(host, { revoked: id }) : print(host, `revoked ${id}`));
    });
}
