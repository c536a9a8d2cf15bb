/**
 * A delegation as a model reads it: its state, its question or answer, and the next tool to call. Limit: long texts are
 * cut; check_task_status with `full` shows up to 256 KiB.
 */
import * as z from "zod";
import { toDelegation } from "../../../engine/delegations/parse.ts";
import { preview } from "../../../engine/delegations/preview.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import { textOf } from "../../../schema/a2a.ts";
import { budgetShownSchema } from "../../../schema/budget.ts";
import { isBudgetQuestion } from "../../../schema/budget-question.ts";
import { actionSchema, type Delegation, isTerminal, progressSchema } from "../../../schema/delegation.ts";
import { usageSumSchema } from "../../../schema/usage.ts";
import { delegationIdSchema } from "../../../schema/values.ts";
import { votesText } from "../../../schema/vote-text.ts";
import { counted } from "../../../schema/wording.ts";
import { type ToolError, toolErrorSchema } from "../errors.ts";
import { recoveryFor } from "../recoveries.ts";
import { ByteBudget, contentLines, contentViewSchema, type FileBlock, toContentView } from "./content.ts";
import type { ToolOutput } from "./tool.ts";

export const delegationIdInput = delegationIdSchema.describe(
  "The delegation_id, as returned when delegating.",
);

/** The most bytes of a reply with its artifacts, or of a question, in a view. */
export const VIEW_BYTES = { single: 16_384, list: 400, full: 262_144 } as const;
const ERROR_BYTES = 4_096;

const questionSchema = z.object({
  interrupt_id: z.string(),
  kind: z.enum(["input", "auth"]),
  expires_at: z.string(),
  /** Some of the question is not shown. */
  truncated: z.boolean().optional(),
  /** How many people must approve, who has, and what, by request_id. */
  votes: z
    .object({ needed: z.int(), given: z.array(z.string()), answers: z.unknown().optional() })
    .optional(),
  requests: z.array(
    z.object({
      request_id: z.string(),
      text: z.string(),
      /** Some of the text, the options, the schema or the action is not shown. */
      truncated: z.boolean().optional(),
      options: z.array(z.unknown()).optional(),
      schema: z.unknown().optional(),
      /** The action that the agent takes if the answer is `approve`. */
      action: actionSchema.optional(),
      /** The answer's data may replace the arguments of the action. */
      edit: z.boolean().optional(),
    }),
  ),
});

export const delegationViewShape = {
  delegation_id: z.string(),
  state: z.string(),
  version: z.int(),
  agent: z.string(),
  delegator: z.string(),
  context_id: z.string(),
  task_preview: z.string(),
  attempt: z.int(),
  created_at: z.string(),
  updated_at: z.string(),
  progress: progressSchema,
  /** What the work has used, as far as its workers reported it. */
  usage: usageSumSchema,
  /** How much it and everything under it may use, and has used. */
  budget: budgetShownSchema,
  question: questionSchema,
  reply: contentViewSchema,
  artifacts: z.array(contentViewSchema.extend({ artifact_id: z.string(), name: z.string().optional() })),
  /** How many artifacts are not shown. */
  artifacts_omitted: z.int(),
  /** The next tool to call. */
  next: z.string(),
};
export const delegationViewSchema = z
  .object(delegationViewShape)
  .partial()
  .extend({ error: toolErrorSchema.optional() });
export type DelegationView = z.infer<typeof delegationViewSchema>;

function questionView(
  { interrupt }: Delegation,
  budget: ByteBudget,
): z.infer<typeof questionSchema> | undefined {
  if (interrupt === null) return undefined;
  const { id, kind, expires_at, requests } = interrupt;
  const shown = budget.map(requests, ({ request_id, message, options, schema, action, edit }) => {
    budget.spend(request_id);
    const text = budget.cut(textOf(message));
    const hasOptions = options !== undefined && budget.spendIfFits(options);
    const hasSchema = schema !== undefined && budget.spendIfFits(schema);
    const hasAction = action !== undefined && budget.spendIfFits(action);
    const isWhole =
      (options === undefined || hasOptions) &&
      (schema === undefined || hasSchema) &&
      (action === undefined || hasAction);
    return {
      request_id,
      ...text,
      ...(!isWhole && { truncated: true }),
      ...(hasOptions && { options }),
      ...(hasSchema && { schema }),
      ...(hasAction && { action }),
      ...(edit !== undefined && { edit }),
    };
  });
  const isCut = shown.length < requests.length || shown.some(({ truncated }) => truncated === true);
  const votes = interrupt.votes && {
    needed: interrupt.votes.needed,
    given: interrupt.votes.given.map(({ by }) => by),
    ...(interrupt.votes.answers &&
      budget.spendIfFits(interrupt.votes.answers) && { answers: interrupt.votes.answers }),
  };
  const head = { interrupt_id: id, kind, expires_at, ...(votes && { votes }) };
  return { ...head, ...(isCut && { truncated: true }), requests: shown };
}

/** The error of a delegation that did not complete. */
export function toolErrorOf(delegation: Delegation, bytes = ERROR_BYTES): ToolError | undefined {
  const { error, id } = delegation;
  if (error === null) return undefined;
  const { category, code, message, retryable } = error;
  return {
    category,
    code,
    message: preview(message, Math.min(bytes, ERROR_BYTES)),
    retryable,
    delegation_valid: !isTerminal(delegation.state),
    recovery: recoveryFor(error),
    delegation_id: id,
  };
}

function nextStep({ state, interrupt }: Delegation, isCut: boolean): string {
  if (interrupt !== null) {
    const first = isCut ? "The question is cut: call check_task_status with full: true first. " : "";
    if (isBudgetQuestion(interrupt.id))
      return `${first}The broker asks for a larger budget: call approve_or_deny with the interrupt_id for the proposed amounts, or answer_task with decision approve and other amounts as data; deny ends it.`;
    const { votes } = interrupt;
    if (votes && votes.given.length > 0)
      return `${first}It has ${votesText(votes)}; the agent waits for the others. Each person approves once, by approve_or_deny, or by answer_task with the same data as in votes. If yours is among them, call check_task_status with wait_seconds.`;
    return `${first}The agent waits for an answer: call answer_task with the interrupt_id (or approve_or_deny for a yes-or-no question), then check_task_status with wait_seconds.`;
  }
  if (!isTerminal(state)) {
    return "The work continues in the background: call check_task_status with wait_seconds 45, or do other work and later call wait_for_results with its id in ids. Do not delegate it again.";
  }
  return isCut ? "The answer is cut: call check_task_status with full: true for the rest." : "";
}

/** The progress; in a list, without the step and the tools, and with a shorter message. */
function progressView({ progress }: Delegation, bytes: number): Delegation["progress"] {
  if (progress === null || bytes >= VIEW_BYTES.single) return progress;
  const { message, current_step: _step, tools_used: _tools, ...counts } = progress;
  return { ...counts, ...(message !== undefined && { message: preview(message, bytes) }) };
}

/** `blocks` gets the files of the answer that fit. */
export function toDelegationView(
  delegation: Delegation,
  bytes: number = VIEW_BYTES.single,
  blocks?: FileBlock[],
): DelegationView {
  const budget = new ByteBudget(bytes);
  const question = questionView(delegation, budget);
  const reply = delegation.reply === null ? undefined : toContentView(delegation.reply, budget, blocks);
  const artifacts = budget.isSpent
    ? []
    : budget.map(delegation.artifacts, (artifact) => {
        const { artifactId: artifact_id, name } = artifact;
        budget.spend(artifact_id, name);
        return {
          artifact_id,
          ...(name !== undefined && { name }),
          ...toContentView(artifact, budget, blocks),
        };
      });
  const omitted = delegation.artifacts.length - artifacts.length;
  const isCut = omitted > 0 || [question, reply, ...artifacts].some((content) => content?.truncated === true);
  const error = toolErrorOf(delegation, bytes);
  const progress = progressView(delegation, bytes);
  const next = nextStep(delegation, isCut && bytes < VIEW_BYTES.full);
  return {
    delegation_id: delegation.id,
    state: delegation.state,
    version: delegation.version,
    agent: delegation.target,
    delegator: delegation.delegator,
    context_id: delegation.context_id,
    task_preview: delegation.task_preview,
    attempt: delegation.attempt,
    created_at: delegation.created_at,
    updated_at: delegation.updated_at,
    ...(progress !== null && { progress }),
    ...(delegation.usage && { usage: delegation.usage.total }),
    ...(delegation.budget && { budget: delegation.budget }),
    ...(question && { question }),
    ...(reply && { reply }),
    ...(artifacts.length > 0 && { artifacts }),
    ...(omitted > 0 && { artifacts_omitted: omitted }),
    ...(error && { error }),
    ...(next !== "" && { next }),
  };
}

/** The progress in one line. */
export function progressLine({ state, target, progress, attempt }: Delegation): string {
  if (state === "submitted") return `queued for ${target}`;
  if (state === "awaiting_children") return `${target}: waits for parts (attempt ${attempt})`;
  if (state !== "working" || progress === null) return `${target}: ${state} (attempt ${attempt})`;
  const { message, current_step, done, total } = progress;
  const count = done === undefined ? "" : `${done}${total === undefined ? "" : `/${total}`} `;
  return preview(`${target}: ${count}${message ?? current_step ?? "working"}`, 500);
}

/** The view as text. */
export function viewToText(summary: DelegationView): string {
  const { delegation_id, agent, state, progress, question, reply, artifacts, error, next } = summary;
  const { artifacts_omitted, budget } = summary;
  const lines = [`Delegation ${delegation_id} to ${agent}: ${state}.`];
  if (state === "working" && progress) lines.push(`Progress: ${JSON.stringify(progress)}`);
  if (budget) lines.push(`Budget: ${JSON.stringify(budget)}`);
  if (question) {
    lines.push(`Question (interrupt_id ${question.interrupt_id}, expires ${question.expires_at}):`);
    for (const { request_id, text, options, schema, action, edit, truncated } of question.requests) {
      const rule = schema === undefined ? "" : ` JSON Schema: ${JSON.stringify(schema)}`;
      const choices = options === undefined ? "" : ` Options: ${JSON.stringify(options)}`;
      const editable = edit === true ? " (editable)" : "";
      const proposed = action && ` Action: ${action.name} ${JSON.stringify(action.arguments)}${editable}`;
      lines.push(
        `- [${request_id}] ${text}${choices}${rule}${proposed ?? ""}${truncated === true ? " [cut]" : ""}`,
      );
    }
  }
  if (reply) lines.push("Reply:", ...contentLines(reply));
  for (const { artifact_id, name, ...content } of artifacts ?? []) {
    lines.push(`Artifact ${name ?? artifact_id}:`, ...contentLines(content));
  }
  if (artifacts_omitted !== undefined)
    lines.push(`[${counted(artifacts_omitted, artifacts ? "more artifact" : "artifact")} not shown]`);
  if (error) lines.push(`${error.category} ${error.code}: ${error.message}`, `What to do: ${error.recovery}`);
  if (next !== undefined) lines.push(`Next: ${next}`);
  return lines.join("\n");
}

/** A tool's output that shows one delegation. */
/** After a change that the caller made: artifacts are only counted, because check_task_status shows them. */
export function showChanged(record: StoredDelegation): ToolOutput {
  const delegation = toDelegation(record);
  const { length } = delegation.artifacts;
  const view = toDelegationView({ ...delegation, artifacts: [] });
  const data = { ...view, ...(length > 0 && { artifacts_omitted: length }) };
  return { text: viewToText(data), data };
}

export function showDelegation(record: StoredDelegation): ToolOutput {
  const data = toDelegationView(toDelegation(record));
  return { text: viewToText(data), data };
}
