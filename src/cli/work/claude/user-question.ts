/** Claude Code's tool AskUserQuestion: each of its questions is a request of the broker, and the tool gets the answers. */
import * as z from "zod";
import type { Answered, Question } from "../../../client/questions.ts";
import { oneLine } from "../../show/output.ts";
import { type Asked, digestOf, type Settled } from "../acp/asked.ts";
import type { ToolDecision, ToolRequest } from "./control.ts";

const TITLE_MAX = 200;
const TOOL = "AskUserQuestion";

const optionSchema = z.object({ label: z.string().min(1), description: z.string().optional() });
const questionSchema = z.object({
  question: z.string().min(1),
  header: z.string().optional(),
  options: z.array(optionSchema).max(100).optional(),
  multiSelect: z.boolean().optional(),
});
type UserQuestion = z.infer<typeof questionSchema>;
const inputSchema = z.object({ questions: z.array(questionSchema).min(1) });

/** Undefined for another tool, or questions that the worker cannot show. A response is the answer's text. */
export function toUserQuestions({ tool_name, input }: ToolRequest): Asked<string | undefined>[] | undefined {
  if (tool_name !== TOOL) return undefined;
  return inputSchema.safeParse(input).data?.questions.map((asked) => ({
    title: oneLine(asked.question, TITLE_MAX),
    digest: digestOf({ type: TOOL, asked }),
    question: toQuestion(asked),
    settle: settled,
    canceled: undefined,
  }));
}

/** `answers` has one for each question. */
export function answersOf({ input }: ToolRequest, answers: readonly (string | undefined)[]): ToolDecision {
  const { questions } = inputSchema.parse(input);
  if (answers.includes(undefined)) return { behavior: "deny", message: "The person gave no answer." };
  const byQuestion = Object.fromEntries(questions.map(({ question }, at) => [question, answers[at]]));
  return { behavior: "allow", updatedInput: { ...input, answers: byQuestion } };
}

function toQuestion({ question, header, options = [], multiSelect }: UserQuestion): Question {
  const choices = options.map(
    ({ label, description }) => `- ${label}${description ? `: ${description}` : ""}`,
  );
  const several = multiSelect === true ? ["Choose one, or send a list of several."] : [];
  const text = [
    header ? `${header}: ${question}` : question,
    ...(choices.length > 0 ? [choices.join("\n")] : []),
    ...several,
  ].join("\n\n");
  const labels = [...new Set(options.map(({ label }) => label))];
  if (labels.length === 0) return { text };
  // The tool also takes an answer that is none of the choices.
  const free = { type: "string", minLength: 1 };
  const schema = multiSelect === true ? { type: "array", items: free, minItems: 1 } : free;
  return { text, options: labels, schema };
}

function settled({ decision, data, text }: Answered): Settled<string | undefined> {
  const chosen = Array.isArray(data) ? data.join(", ") : (data ?? (text || decision));
  const response =
    typeof chosen === "string" ? chosen : chosen === undefined ? undefined : JSON.stringify(chosen);
  return { response, isDenied: response === undefined };
}
