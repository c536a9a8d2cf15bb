/** `errand answers`: lists questions that were answered, or expired unanswered, newest first. */
import { type Command, Option } from "commander";
import { Pages } from "../../client/pages.ts";
import { type AnswersFilter, answerOutcomeSchema, type SettledQuestion } from "../../schema/answered.ts";
import { type Decision, decisionSchema } from "../../schema/decision.ts";
import { principalSchema } from "../../schema/values.ts";
import { type Cli, connectToRead, examples } from "../context.ts";
import { agentName, valid, wholeBetween } from "../input/arguments.ts";
import { INSTANT_EXAMPLE, instant } from "../input/instant.ts";
import { ANSWER_COLUMNS } from "../show/answer-columns.ts";
import { noteMore, pagesUpTo } from "../show/list-pages.ts";
import { addTableOptions, ListTable, type TableOptions } from "../show/list-table.ts";
import { note, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";

interface AnswersOptions extends TableOptions {
  readonly target?: string;
  readonly delegator?: string;
  readonly by?: string;
  readonly decision?: Decision;
  readonly outcome?: SettledQuestion["outcome"];
  readonly since?: string;
  readonly limit: number;
  readonly cursor?: string;
}

const ABOUT = `
What an approval changed in the arguments of an action is shown as 'replicas 3 → 5'. The column via says how a question was
answered: console (a signed-in person), rest (a token: a program, or this one), mcp, a2a, ag-ui, link (the link of a
notification), auto (approved in advance) or rule (by a rule).

With --json, it prints one question per line, and {"next_cursor": "…"} on stderr if there are more.`;

export function addAnswers(program: Command, { host }: Cli): void {
  const command = program
    .command("answers")
    .description("list the questions that were answered, by whom and how, and those that expired unanswered")
    .option("--target <agent>", "only questions of this agent", agentName)
    .option(
      "--delegator <principal>",
      "only work from this principal, for example caller:ci",
      valid(principalSchema),
    )
    .option(
      "--by <principal>",
      "only answers of this principal, for example approver:ann",
      valid(principalSchema),
    )
    .addOption(new Option("--decision <decision>", "only with this decision").choices(decisionSchema.options))
    .addOption(new Option("--outcome <outcome>", "only these").choices(answerOutcomeSchema.options))
    .option("--since <instant>", `only settled at or after this time, ${INSTANT_EXAMPLE}`, instant)
    .option("--limit <n>", "maximum number of questions", wholeBetween(1, 100_000), 20)
    .option("--cursor <cursor>", "continue after an earlier list");
  addTableOptions(command, ANSWER_COLUMNS)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand answers --by approver:ann --since 2026-01-31",
        "errand answers --outcome expired",
        "errand answers --decision approve --json | jq -r .delegation_id",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<AnswersOptions>();
      const { target, delegator, by, decision, outcome, since, json = false } = options;
      const filter: AnswersFilter = { target, delegator, by, decision, outcome, since };
      const pages = new Pages(await connectToRead(host, options));
      const table = new ListTable(host, ANSWER_COLUMNS, options);
      let count = 0;
      let cursor: string | null = null;
      await interruptible(async (signal) => {
        const found = pagesUpTo({
          wanted: options.limit,
          cursor: options.cursor,
          read: (page) => pages.answers({ ...filter, ...page }, signal),
          countOf: ({ answers }) => answers.length,
        });
        for await (const { answers, next_cursor } of found) {
          if (json) for (const one of answers) await printJson(host, one);
          else if (answers.length > 0) await table.print(answers);
          count += answers.length;
          cursor = next_cursor;
        }
      });
      await noteMore(host, cursor, json);
      if (count > 0 || cursor !== null || json) return;
      const isFiltered = Object.values(filter).some((value) => value !== undefined);
      await note(host, isFiltered ? "no answers match." : "no answers yet.");
    });
}
