/**
 * A delegation as a model reads it: what it is, where it stands, the answer or its beginning, and what to call next.
 * Limit: long texts are cut; the whole of them, up to a bound, is for check_task_status with `full`.
 */
import * as z from "zod";
import { preview } from "../../engine/delegate.ts";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import { type Artifact, type Message, textOf } from "../../schema/a2a.ts";
import { type Delegation, delegationSchema, isTerminal, progressSchema } from "../../schema/delegation.ts";
import { isErrorCode } from "../../schema/errors.ts";
import { type ToolError, toolErrorSchema } from "./errors.ts";
import { RECOVERIES } from "./recoveries.ts";

/** Bytes of a reply that are shown: alone, in a list, and when all of it is asked for. */
export const SHOWN = { one: 16_384, list: 400, full: 262_144 } as const;
const QUESTION_BYTES = 4_096;

export const delegationOf = (record: StoredDelegation): Delegation =>
  delegationSchema.parse(JSON.parse(record.json));

const contentSchema = z.object({
  text: z.string(),
  /** There is more than is shown. */
  truncated: z.boolean().optional(),
  data: z.array(z.unknown()).optional(),
  urls: z.array(z.string()).optional(),
});

export const questionSchema = z.object({
  interrupt_id: z.string(),
  kind: z.enum(["input", "auth"]),
  expires_at: z.string(),
  requests: z.array(
    z.object({
      request_id: z.string(),
      text: z.string(),
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
  /** What to call next. */
  next: z.string(),
};
export const summarySchema = z.object(summaryShape).partial().extend({ error: toolErrorSchema.optional() });
export type Summary = z.infer<typeof summarySchema>;

/** How many bytes are left for what is still to be shown. */
class Room {
  left: number;
  constructor(bytes: number) {
    this.left = bytes;
  }
  take(text: string): { text: string; truncated?: true } {
    const shown = preview(text, Math.max(0, this.left));
    this.left -= Buffer.byteLength(shown);
    return shown.length < text.length ? { text: shown, truncated: true } : { text };
  }
}

/** Text as far as there is room; data and addresses whole or not at all; bytes never. */
export function contentOf(
  said: Pick<Message | Artifact, "parts">,
  room: Room,
): z.infer<typeof contentSchema> {
  const cut = room.take(textOf(said));
  const data: unknown[] = [];
  const urls: string[] = [];
  let omitted = false;
  for (const part of said.parts) {
    const size = part.url?.length ?? (part.data === undefined ? 0 : JSON.stringify(part.data).length);
    if (part.raw !== undefined || size > room.left) {
      omitted = true;
      continue;
    }
    room.left -= size;
    if (part.url !== undefined) urls.push(part.url);
    if (part.data !== undefined) data.push(part.data);
  }
  return {
    ...cut,
    ...(omitted && { truncated: true }),
    ...(data.length > 0 && { data }),
    ...(urls.length > 0 && { urls }),
  };
}

/** A message: who says it, and what. */
export const saidSchema = contentSchema.extend({
  role: z.enum(["user", "agent"]),
  message_id: z.string(),
  interrupt_id: z.string().optional(),
  request_id: z.string().optional(),
  decision: z.string().optional(),
});

export function saidOf(message: Message, room: Room): z.infer<typeof saidSchema> {
  const { interrupt_id, request_id, decision } = message.metadata ?? {};
  return {
    role: message.role === "ROLE_USER" ? "user" : "agent",
    message_id: message.messageId,
    ...(typeof interrupt_id === "string" && { interrupt_id }),
    ...(typeof request_id === "string" && { request_id }),
    ...(typeof decision === "string" && { decision }),
    ...contentOf(message, room),
  };
}

export const roomFor = (bytes: number): Room => new Room(bytes);

export function questionOf({ interrupt }: Delegation): z.infer<typeof questionSchema> | undefined {
  if (interrupt === null) return undefined;
  const { id, kind, expires_at, requests } = interrupt;
  return {
    interrupt_id: id,
    kind,
    expires_at,
    requests: requests.map(({ request_id, message, options, schema }) => ({
      request_id,
      text: preview(textOf(message), QUESTION_BYTES),
      ...(options !== undefined && { options }),
      ...(schema !== undefined && { schema }),
    })),
  };
}

/** Why it ended otherwise than completed. */
export function failureOf(delegation: Delegation): ToolError | undefined {
  const { error, id } = delegation;
  if (error === null) return undefined;
  const { category, code, message, retryable, recovery } = error;
  return {
    category,
    code,
    message: preview(message, QUESTION_BYTES),
    retryable,
    delegation_valid: !isTerminal(delegation.state),
    recovery: (isErrorCode(code) ? RECOVERIES[code] : RECOVERIES.agent_error) ?? recovery,
    delegation_id: id,
  };
}

function nextOf({ state, interrupt }: Delegation, isCut: boolean): string {
  if (interrupt !== null) {
    return "It waits for an answer: call answer_task with the interrupt_id (or approve_or_deny for a yes or no), then check_task_status with wait_seconds.";
  }
  if (!isTerminal(state)) {
    return "It goes on without you: call check_task_status with wait_seconds 45, or do something else and call wait_for_results later. Do not delegate it again.";
  }
  return isCut ? "The answer is cut: call check_task_status with full: true for all of it." : "";
}

export function summarize(delegation: Delegation, bytes: number = SHOWN.one): Summary {
  const room = new Room(bytes);
  const reply = delegation.reply === null ? undefined : contentOf(delegation.reply, room);
  const artifacts = delegation.artifacts.map((artifact) => ({
    artifact_id: artifact.artifactId,
    ...(artifact.name !== undefined && { name: artifact.name }),
    ...contentOf(artifact, room),
  }));
  const isCut = [reply, ...artifacts].some((content) => content?.truncated === true);
  const question = questionOf(delegation);
  const error = failureOf(delegation);
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
    ...(delegation.progress !== null && { progress: delegation.progress }),
    ...(question && { question }),
    ...(reply && { reply }),
    ...(artifacts.length > 0 && { artifacts }),
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
  const lines = [`Delegation ${delegation_id} to ${agent}: ${state}.`];
  if (state === "working" && progress) lines.push(`Progress: ${JSON.stringify(progress)}`);
  if (question) {
    lines.push(`It asks (interrupt_id ${question.interrupt_id}, until ${question.expires_at}):`);
    for (const { request_id, text, options } of question.requests) {
      const choices = options === undefined ? "" : ` Options: ${JSON.stringify(options)}`;
      lines.push(`- [${request_id}] ${text}${choices}`);
    }
  }
  if (reply) lines.push("Reply:", ...wordsOf(reply));
  for (const { artifact_id, name, ...content } of artifacts ?? []) {
    lines.push(`Artifact ${name ?? artifact_id}:`, ...wordsOf(content));
  }
  if (error) lines.push(`${error.category} ${error.code}: ${error.message}`, `What to do: ${error.recovery}`);
  if (next !== undefined) lines.push(`Next: ${next}`);
  return lines.join("\n");
}

function wordsOf({ text, truncated, data = [], urls = [] }: z.infer<typeof contentSchema>): string[] {
  return [
    ...(text === "" ? [] : [text]),
    ...data.map((one) => JSON.stringify(one)),
    ...urls,
    ...(truncated === true ? ["[cut]"] : []),
  ];
}
