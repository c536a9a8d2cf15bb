/**
 * `errand answer`: what a delegation asked, answered. Limit: one delegation at a time; answers are not checked against
 * the options and the schema of the question.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import type { Answer, Answers } from "../../client/control.ts";
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError, localError } from "../../client/errors.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { answerSchema, decisionSchema } from "../../schema/interrupt.ts";
import { issuesOf } from "../../schema/issues.ts";
import { type Cli, connect, delegationId, examples, type GlobalOptions } from "../context.ts";
import { InOurWords, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { askPerson } from "../input/prompt.ts";
import { jsonFrom, textFrom } from "../input/task.ts";
import { print, printJson, write } from "../show/output.ts";

interface AnswerOptions extends GlobalOptions {
  readonly text?: string;
  readonly data?: unknown;
  readonly interrupt?: string;
  readonly decision?: "approve" | "deny";
  readonly answers?: string;
}

export const INTERRUPT = "only this question, int_…; not what it may ask meanwhile (default: the open one)";
const MEANS = "Give it as words, or with --text, --decision, --data or --answers.";

const ABOUT = `
On a terminal, and with nothing but the id, it shows what is asked and prompts for the answer. A credential is not shown
while it is typed. Do not give one as an argument, where other processes and the shell's history see it: answer at the
prompt, or pass '-' and write it to stdin. The file of --answers is one JSON object: for each request_id a text, or an
object of decision, text or message, and data.`;

export function addAnswer(program: Command, { host }: Cli): void {
  program
    .command("answer")
    .description("answer what a delegation asks; it goes on before new work")
    .argument("<id>", "the delegation, dlg_…", delegationId)
    .argument("[text...]", "the answer; '-' reads it from stdin")
    .option("--text <text>", "the answer, as words do")
    .addOption(new Option("--decision <decision>", "a decision").choices(decisionSchema.options))
    .option("--data <json>", "any JSON, for the agent", jsonOption)
    .option("--answers <path>", "answers to several requests, as JSON; '-' is stdin")
    .option("--interrupt <id>", INTERRUPT)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand answer dlg_…",
        "errand answer dlg_… main",
        "errand answer dlg_… - < token.txt",
        'errand answer dlg_… --decision deny --text "not on a Friday"',
        `echo '{"host": "db1", "consent": {"decision": "approve"}}' | errand answer dlg_… --answers -`,
      ),
    )
    .action(async (id: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<AnswerOptions>();
      const given = await answerFrom(host, words, options);
      const delegator = new Delegator(await connect(host, options));
      if (given === undefined) {
        const delegation = await delegator.get(id);
        const { interrupt, target } = delegation;
        if (interrupt === null) throw nothingAsked(delegation);
        if (!options.json) await write(host.stderr, `${target} asks, until ${interrupt.expires_at}:\n`);
        const answer = await askPerson(host, interrupt);
        await told(host, options, delegator.answer(id, interrupt.id, answer).catch(inWords(delegator, id)));
        return;
      }
      await told(
        host,
        options,
        delegator.answer(id, options.interrupt ?? null, given).catch(inWords(delegator, id)),
      );
    });
}

/** Nothing when the person is to be asked. */
async function answerFrom(
  host: CliHost,
  words: readonly string[],
  options: AnswerOptions,
): Promise<Answer | Answers | undefined> {
  const { decision, data, answers } = options;
  const said = words.length > 0 ? words.join(" ") : undefined;
  if (said !== undefined && options.text !== undefined)
    throw usageError("the answer is given twice: as words and by --text");
  const text = said === "-" ? (await textFrom(host, "-")).trimEnd() : (said ?? options.text);
  const some = [text, decision, data].some((one) => one !== undefined);
  if (answers !== undefined) {
    if (some) throw usageError("--answers has all of it: give nothing beside it");
    return { answers: await answersIn(host, answers) };
  }
  if (text !== undefined && text.trim() === "") throw usageError("the answer is empty", MEANS);
  if (some) {
    return {
      ...(decision !== undefined && { decision }),
      ...(text !== undefined && { text }),
      ...(data !== undefined && { data }),
    };
  }
  if (!host.isTty.stdin || !host.isTty.stderr)
    throw usageError("there is no answer, and no terminal to ask on", MEANS);
  if (options.interrupt !== undefined) throw usageError("--interrupt goes with an answer", MEANS);
  return undefined;
}

const answersSchema = z.record(z.string(), z.union([z.string().min(1), answerSchema]));

async function answersIn(host: CliHost, path: string): Promise<Answers["answers"]> {
  const parsed = answersSchema.safeParse(await jsonFrom(host, path));
  if (parsed.success) return parsed.data;
  const { text } = issuesOf(parsed.error, { whole: "the value" });
  throw usageError(
    `${path === "-" ? "stdin" : path} has no answers: ${text}`,
    'The least is {"<request_id>": "…"}.',
  );
}

/** For a delegation without an open question. */
export function nothingAsked(delegation: Delegation): InOurWords {
  const { id, state } = delegation;
  const { problem } = localError({
    code: "interrupt_not_open",
    category: "PROTOCOL",
    detail: `${id} asks nothing: it is ${state}`,
    recovery: `See where it stands with 'errand get ${id}'.`,
  });
  return new InOurWords(expired(delegation) ? { ...problem, ...askedAgain(id) } : problem);
}

const expired = ({ error }: Delegation): boolean => error?.code === "interrupt_expired";

/** Of a question that nobody answered in time. */
const askedAgain = (id: string) => ({
  detail: `${id} asks nothing any more: its question expired`,
  recovery: `'errand redrive ${id}' delegates it anew, and it asks again; its delegator and the operator may.`,
});

async function told(host: CliHost, { json }: GlobalOptions, answering: ReturnType<Delegator["answer"]>) {
  const delegation = await answering;
  await (json ? printJson(host, delegation) : print(host, `answered ${delegation.id}`));
}

/** What to do next with this very delegation. */
export function inWords(delegator: Delegator, id: string): (error: unknown) => Promise<never> {
  return async (error) => {
    if (!(error instanceof ErrandApiError)) throw error;
    const { problem } = error;
    if (Array.isArray(error.details?.request_ids)) {
      const recovery = `Answer all of them at once: 'errand answer ${id} --answers <path>'.`;
      throw new InOurWords({ ...problem, recovery }, { cause: error });
    }
    if (error.code !== "interrupt_not_open" && error.code !== "already_finished") throw error;
    const isExpired = await delegator.get(id).then(expired, () => false);
    const recovery = `See where it stands with 'errand get ${id}'.`;
    throw new InOurWords({ ...problem, recovery, ...(isExpired && askedAgain(id)) }, { cause: error });
  };
}

export function jsonOption(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw new InvalidArgumentError("It takes JSON; a text is written in double quotes.");
  }
}
