/** `errand answer`: answers a delegation's question. Limit: the broker alone checks whether the answer fits. */
import { type Command, Option } from "commander";
import * as z from "zod";
import type { Answer, Answers } from "../../client/answer.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { decisionSchema } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { answerSchema } from "../../schema/interrupt.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import type { LocalFile } from "../files/upload-file.ts";
import type { CliHost } from "../host.ts";
import { DELEGATION, delegationId, json } from "../input/arguments.ts";
import {
  asProposedOption,
  asVotedOption,
  confirmVoted,
  voidsOthers,
  votedAnswer,
} from "../input/as-voted.ts";
import { type AttachOptions, foundIn, withFiles } from "../input/attached.ts";
import { several } from "../input/attachment.ts";
import { answerByPrompt } from "../input/prompt.ts";
import { jsonFrom, textFrom } from "../input/task.ts";
import { confirmVoiding, noteVoided, withoutOwn } from "../input/voids.ts";
import { explainRefusal, INTERRUPT, noOpenQuestion } from "../open-question.ts";
import { print, printJson, write } from "../show/output.ts";
import { localTime } from "../show/time.ts";
import { sentText, votesLine } from "../show/votes.ts";

interface AnswerOptions extends GlobalOptions, AttachOptions {
  readonly text?: string;
  readonly data?: unknown;
  readonly interrupt?: string;
  readonly decision?: "approve" | "deny";
  readonly answers?: string;
  readonly asVoted?: boolean;
  readonly asProposed?: boolean;
  readonly yes?: boolean;
}

const HOW_TO_PASS = "Pass the answer as an argument, or with --text, --decision, --data or --answers.";

const ABOUT = `
With only the id, on a terminal, it shows the question and prompts for the answer. A credential is hidden while you type
it. Never pass a credential as an argument, where other processes and the shell history can see it: type it at the
prompt, or pass '-' and write it to stdin.

The file of --answers is a JSON object. It maps each request_id to a text, or to an object with decision, text or
message, and data.

The broker refuses an answer that does not fit its question: give one of the options, data that fits the schema, or a
decision for an action. The prompt then says why, and asks again. With approve, --data replaces the arguments of an
editable action.

Where the agent needs the approvals of several people, the question stays open until there are enough. An answer that voids
the approvals of others asks for confirmation, or requires --yes; --as-voted approves the same as they did.`;

export function addAnswer(program: Command, { host }: Cli): void {
  program
    .command("answer")
    .description("answer a delegation's question; the delegation then resumes ahead of new work")
    .argument("<id>", DELEGATION, delegationId)
    .argument("[text...]", "the answer; '-' reads it from stdin")
    .option("--text <text>", "the answer, instead of the text argument")
    .addOption(new Option("--decision <decision>", "answer with a decision").choices(decisionSchema.options))
    .option("--data <json>", "the data that the question asks for, as JSON", json)
    .option("--answers <path>", "answers to several requests, as a JSON file; '-' reads stdin")
    .option(
      "--attach <path>",
      "send this file, or the files of this folder, with the answer; may be repeated",
      several,
    )
    .addOption(asVotedOption())
    .addOption(asProposedOption())
    .option("--yes", "void approvals of something else without asking")
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
      const typed = await answerFrom(host, words, options);
      const files = await foundIn(host, options);
      const connection = await connect(host, options);
      const delegator = new Delegator(connection);
      const given = files.length === 0 ? typed : await answerWith(host, connection, typed, files, options);
      if (given === undefined) {
        const delegation = await delegator.get(id);
        const { interrupt, target } = delegation;
        if (interrupt === null) throw noOpenQuestion(delegation);
        if (!options.json) {
          const votes = votesLine(interrupt);
          const more = votes === undefined ? "" : `, ${votes}`;
          await write(
            host.stderr,
            `${target} asks (open until ${localTime(interrupt.expires_at)}${more}):\n`,
          );
        }
        const others = await withoutOwn(connection, interrupt);
        const answering = answerByPrompt(host, others, (answer) =>
          delegator.answer(id, interrupt.id, answer),
        );
        await report(host, options, answering.catch(explainRefusal(delegator, id)));
        return;
      }
      const read = await delegator.get(id);
      const { interrupt } = read;
      const { interrupt: named } = options;
      // The broker checks an answer to a question that is no longer open.
      const open = interrupt && (named === undefined || named === interrupt.id) ? interrupt : null;
      const answer = open
        ? await agreedAnswer(host, { ...options, connection, delegation: read, interrupt: open }, given)
        : given;
      const isOne =
        open && (open.requests.length === 1 || (typeof answer === "object" && "answers" in answer));
      const sending = delegator.answer(id, isOne ? open.id : (named ?? null), answer);
      await noteVoided(host, open, await report(host, options, sending.catch(explainRefusal(delegator, id))));
    });
}

interface Asked extends Pick<AnswerOptions, "text" | "asVoted" | "asProposed" | "yes"> {
  readonly connection: ConnectionOptions;
  readonly delegation: Delegation;
  readonly interrupt: Interrupt;
}

/** The answer to send. Throws unless it may void the approvals of others, if it does. */
async function agreedAnswer(
  host: CliHost,
  { asVoted, asProposed, ...asked }: Asked,
  given: Answer | Answers,
): Promise<Answer | Answers> {
  const { connection, delegation, interrupt, yes } = asked;
  const body = typeof given === "string" || "answers" in given ? {} : given;
  const { decision, data } = body;
  if (asVoted) return votedAnswer(interrupt, body);
  const isMisfit = interrupt.requests.length > 1 && !(typeof given === "object" && "answers" in given);
  // It answers only one of several requests, which is refused.
  if (asProposed || isMisfit) return given;
  const others = await withoutOwn(connection, interrupt);
  if (!yes && decision !== undefined && voidsOthers(decision, others, { data })) {
    await confirmVoted(host, delegation, others);
    return votedAnswer(others, body);
  }
  await confirmVoiding(host, { delegation, interrupt: others, yes }, given);
  return given;
}

/** The text and the files are the message of the answer. */
async function answerWith(
  host: CliHost,
  connection: ConnectionOptions,
  given: Answer | Answers | undefined,
  files: readonly LocalFile[],
  options: AnswerOptions,
): Promise<Answer> {
  if (typeof given === "object" && "answers" in given)
    throw usageError("--attach cannot be combined with --answers");
  const { text, ...rest } = typeof given === "string" ? { text: given } : (given ?? {});
  const message = await withFiles(host, connection, text ?? { parts: [] }, files, options);
  return { ...rest, message: typeof message === "string" ? { parts: [{ text: message }] } : message };
}

/** Returns undefined if the command must prompt for the answer. */
async function answerFrom(
  host: CliHost,
  words: readonly string[],
  options: AnswerOptions,
): Promise<Answer | Answers | undefined> {
  const { decision, data, answers, asVoted, asProposed } = options;
  const joined = words.length > 0 ? words.join(" ") : undefined;
  if (joined !== undefined && options.text !== undefined)
    throw usageError("the answer is given twice: as an argument and with --text");
  const text = joined === "-" ? (await textFrom(host, "-")).trimEnd() : (joined ?? options.text);
  if (asVoted || asProposed) {
    if ([data, answers, options.attach, decision === "deny" || undefined].some((one) => one !== undefined))
      throw usageError("--as-voted and --as-proposed go with an approval and a comment only");
    if (asVoted && asProposed) throw usageError("give only one of --as-voted and --as-proposed");
    return { decision: "approve", ...(text !== undefined && { text }) };
  }
  const isGiven = [text, decision, data].some((one) => one !== undefined);
  if (answers !== undefined) {
    if (isGiven) throw usageError("--answers cannot be combined with another answer");
    return { answers: await answersIn(host, answers) };
  }
  if (text !== undefined && text.trim() === "") throw usageError("the answer is empty", HOW_TO_PASS);
  if (isGiven) {
    return {
      ...(decision !== undefined && { decision }),
      ...(text !== undefined && { text }),
      ...(data !== undefined && { data }),
    };
  }
  if (options.attach !== undefined) return undefined;
  if (!host.isTty.stdin || !host.isTty.stderr)
    throw usageError("no answer given, and no terminal to prompt on", HOW_TO_PASS);
  if (options.interrupt !== undefined) throw usageError("--interrupt requires an answer", HOW_TO_PASS);
  return undefined;
}

const answersSchema = z.record(z.string(), z.union([z.string().min(1), answerSchema]));

async function answersIn(host: CliHost, path: string): Promise<Answers["answers"]> {
  const parsed = readAs(answersSchema, await jsonFrom(host, path));
  if (parsed.success) return parsed.data;
  const { text } = issuesOf(parsed.error, { whole: "the value" });
  throw usageError(
    `${path === "-" ? "stdin" : path} does not contain valid answers: ${text}`,
    'The minimum is {"<request_id>": "…"}.',
  );
}

async function report(
  host: CliHost,
  { json, interrupt }: AnswerOptions,
  answering: ReturnType<Delegator["answer"]>,
): Promise<Delegation> {
  const delegation = await answering;
  await (json ? printJson(host, delegation) : print(host, sentText("answered", delegation, interrupt)));
  return delegation;
}
