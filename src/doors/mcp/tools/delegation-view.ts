/**
 * A delegation as a model reads it: what it is, where it stands, the answer or its beginning, and what to call next.
 * Limit: long texts are cut; the whole of them, up to a bound, is for check_task_status with `full`.
 */
import * as z from "zod";
import { preview } from "../../../engine/delegations/delegate.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import { textOf } from "../../../schema/a2a.ts";
import { type Delegation, delegationSchema, isTerminal, progressSchema } from "../../../schema/delegation.ts";
import { isErrorCode } from "../../../schema/errors.ts";
import { type ToolError, toolErrorSchema } from "../errors.ts";
import { RECOVERIES } from "../recoveries.ts";
import { contentOf, contentSchema, Room, wordsOf } from "./content.ts";

/** Bytes of a reply, and of a question, that are shown: alone, in a list, and when all of it is asked for. */
export const SHOWN = { one: 16_384, list: 400, full: 262_144 } as const;
const ERROR_BYTES = 4_096;

export const delegationOf = (record: StoredDelegation): Delegation =>
  delegationSchema.parse(JSON.parse(record.json));

export const questionSchema = z.object({
  interrupt_id: z.string(),
  kind: z.enum(["input", "auth"]),
  expires_at: z.string(),
  /** There is more than is shown. */
  truncated: z.boolean().optional(),
  requests: z.array(
    z.object({
      request_id: z.string(),
      text: z.string(),
      /** Some of it, or its options or schema, is not shown. */
      truncated: z.boolean().optional(),
      options: z.array(z.unknown()).optional(),
      schema: z.unknown().optional(),
    }),
  ),
});

export const summaryShape = {
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
  question: questionSchema,
  reply: contentSchema,
  artifacts: z.array(contentSchema.extend({ artifact_id: z.string(), name: z.string().optional() })),
  /** How many more there are. */
  artifacts_omitted: z.int(),
  /** What to call next. */
  next: z.string(),
};
export const summarySchema = z.object(summaryShape).partial().extend({ error: toolErrorSchema.optional() });
export type Summary = z.infer<typeof summarySchema>;

function questionOf({ interrupt }: Delegation, room: Room): z.infer<typeof questionSchema> | undefined {
  if (interrupt === null) return undefined;
  const { id, kind, expires_at, requests } = interrupt;
  const shown = room.each(requests, ({ request_id, message, options, schema }) => {
    room.spend(request_id);
    const cut = room.take(textOf(message));
    const hasOptions = options !== undefined && room.fits(options);
    const hasSchema = schema !== undefined && room.fits(schema);
    const isWhole = (options === undefined || hasOptions) && (schema === undefined || hasSchema);
    return {
      request_id,
      ...cut,
      ...(!isWhole && { truncated: true }),
      ...(hasOptions && { options }),
      ...(hasSchema && { schema }),
    };
  });
  const isCut = shown.length < requests.length || shown.some(({ truncated }) => truncated === true);
  return { interrupt_id: id, kind, expires_at, ...(isCut && { truncated: true }), requests: shown };
}

/** Why it ended otherwise than completed. */
export function failureOf(delegation: Delegation, bytes = ERROR_BYTES): ToolError | undefined {
  const { error, id } = delegation;
  if (error === null) return undefined;
  const { category, code, message, retryable, recovery } = error;
  return {
    category,
    code,
    message: preview(message, Math.min(bytes, ERROR_BYTES)),
    retryable,
    delegation_valid: !isTerminal(delegation.state),
    recovery: (isErrorCode(code) ? RECOVERIES[code] : RECOVERIES.agent_error) ?? recovery,
    delegation_id: id,
  };
}

function nextOf({ state, interrupt }: Delegation, isCut: boolean): string {
  if (interrupt !== null) {
    const first = isCut ? "It is not shown whole: call check_task_status with full: true first. " : "";
    return `${first}It waits for an answer: call answer_task with the interrupt_id (or approve_or_deny for a yes or no), then check_task_status with wait_seconds.`;
  }
  if (!isTerminal(state)) {
    return "It goes on without you: call check_task_status with wait_seconds 45, or do something else and call wait_for_results later. Do not delegate it again.";
  }
  return isCut ? "The answer is cut: call check_task_status with full: true for all of it." : "";
}

/** In a list no more than a line. */
function progressOf({ progress }: Delegation, bytes: number): Delegation["progress"] {
  if (progress === null || bytes >= SHOWN.one) return progress;
  const { message, current_step: _step, tools_used: _tools, ...counts } = progress;
  return { ...counts, ...(message !== undefined && { message: preview(message, bytes) }) };
}

export function summarize(delegation: Delegation, bytes: number = SHOWN.one): Summary {
  const room = new Room(bytes);
  const question = questionOf(delegation, room);
  const reply = delegation.reply === null ? undefined : contentOf(delegation.reply, room);
  const artifacts = room.isFull
    ? []
    : room.each(delegation.artifacts, (artifact) => {
        const { artifactId: artifact_id, name } = artifact;
        room.spend(artifact_id, name);
        return { artifact_id, ...(name !== undefined && { name }), ...contentOf(artifact, room) };
      });
  const omitted = delegation.artifacts.length - artifacts.length;
  const isCut = omitted > 0 || [question, reply, ...artifacts].some((content) => content?.truncated === true);
  const error = failureOf(delegation, bytes);
  const progress = progressOf(delegation, bytes);
  const next = nextOf(delegation, isCut && bytes < SHOWN.full);
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
    ...(question && { question }),
    ...(reply && { reply }),
    ...(artifacts.length > 0 && { artifacts }),
    ...(omitted > 0 && { artifacts_omitted: omitted }),
    ...(error && { error }),
    ...(next !== "" && { next }),
  };
}

/** How far it is, in a line. */
export function stepOf({ state, target, progress, attempt }: Delegation): string {
  if (state === "submitted") return `waiting for ${target} to take it`;
  if (state !== "working" || progress === null) return `${target}: ${state} (attempt ${attempt})`;
  const { message, current_step, done, total } = progress;
  const count = done === undefined ? "" : `${done}${total === undefined ? "" : `/${total}`} `;
  return preview(`${target}: ${count}${message ?? current_step ?? "working"}`, 500);
}

/** The same in words. */
export function toText(summary: Summary): string {
  const { delegation_id, agent, state, progress, question, reply, artifacts, error, next } = summary;
  const { artifacts_omitted } = summary;
  const lines = [`Delegation ${delegation_id} to ${agent}: ${state}.`];
  if (state === "working" && progress) lines.push(`Progress: ${JSON.stringify(progress)}`);
  if (question) {
    lines.push(`It asks (interrupt_id ${question.interrupt_id}, until ${question.expires_at}):`);
    for (const { request_id, text, options, truncated } of question.requests) {
      const choices = options === undefined ? "" : ` Options: ${JSON.stringify(options)}`;
      lines.push(`- [${request_id}] ${text}${choices}${truncated === true ? " [cut]" : ""}`);
    }
  }
  if (reply) lines.push("Reply:", ...wordsOf(reply));
  for (const { artifact_id, name, ...content } of artifacts ?? []) {
    lines.push(`Artifact ${name ?? artifact_id}:`, ...wordsOf(content));
  }
  if (artifacts_omitted !== undefined) lines.push(`[${artifacts_omitted} more artifacts]`);
  if (error) lines.push(`${error.category} ${error.code}: ${error.message}`, `What to do: ${error.recovery}`);
  if (next !== undefined) lines.push(`Next: ${next}`);
  return lines.join("\n");
}
