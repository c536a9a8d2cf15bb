/**
 * A delegation as an A2A Task, in its JSON form. Pure, so that every gateway shows the same task. Limit: a task may have
 * any size; size-limit.ts bounds those in streams.
 */
import { createHash } from "node:crypto";
import type { Artifact, Message, Part } from "../../../schema/a2a.ts";
import { type A2aStateName, toA2aState } from "../../../schema/a2a-task.ts";
import type { Delegation, DelegationError, Interrupt, Progress } from "../../../schema/delegation.ts";
import { camelMembers } from "../camel-case.ts";

type Metadata = Record<string, unknown>;

export interface StatusJson {
  readonly state: A2aStateName;
  readonly message?: Message | undefined;
  readonly timestamp: string;
}

export interface TaskJson {
  readonly id: string;
  readonly contextId: string;
  readonly status: StatusJson;
  readonly artifacts: readonly Artifact[];
  readonly history: readonly Message[];
  readonly metadata: Metadata;
}

export interface StatusUpdateJson {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: StatusJson;
  readonly metadata: Metadata;
}

export interface ArtifactUpdateJson {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly metadata: Metadata;
}

/** One event of a stream. */
export type UpdateJson =
  | { readonly task: TaskJson }
  | { readonly statusUpdate: StatusUpdateJson }
  | { readonly artifactUpdate: ArtifactUpdateJson };

/** The member of a task's metadata for the broker's own data. */
export const ERRAND_KEY = "errand";

/** The data for a status, from a record or an event. */
export interface StatusSource {
  readonly id: string;
  readonly contextId: string;
  readonly state: Delegation["state"];
  readonly at: string;
  readonly interrupt?: Interrupt | null | undefined;
  readonly progress?: Progress | null | undefined;
  readonly reply?: Message | null | undefined;
  readonly error?: DelegationError | null | undefined;
}

/** The state with its message: the question, the progress, the reply or the error. */
export function toStatus(source: StatusSource): StatusJson {
  const message = statusMessage(source);
  return {
    state: toA2aState(source.state),
    ...(message && { message: inTask(message, source) }),
    timestamp: source.at,
  };
}

function statusMessage({ id, state, interrupt, progress, reply, error }: StatusSource): Message | undefined {
  if (state === "input_required" || state === "auth_required")
    return interrupt ? questionMessage(interrupt) : undefined;
  if (state === "working" || state === "awaiting_children")
    return progress?.message ? progressMessage(id, progress) : undefined;
  if (state === "submitted") return undefined;
  if (reply) return reply;
  return error ? agentMessage(`${id}:error`, [{ text: error.message }]) : undefined;
}

const agentMessage = (messageId: string, parts: Part[], metadata?: Metadata): Message => ({
  messageId,
  role: "ROLE_AGENT",
  parts,
  ...(metadata && { metadata }),
});

/** The id is derived from the content, so that a snapshot and an event have the same. */
function progressMessage(id: string, progress: Progress): Message {
  const hash = createHash("sha256")
    .update(JSON.stringify([id, progress]))
    .digest("hex")
    .slice(0, 32);
  return agentMessage(`prg_${hash}`, [{ text: progress.message ?? "" }]);
}

/** One message for all requests; each part names its request, as the parts of an answer do. */
function questionMessage({ id, requests }: Interrupt): Message {
  const [first, second] = requests;
  if (first && !second) {
    const { message, request_id } = first;
    return { ...message, metadata: { ...message.metadata, interruptId: id, requestId: request_id } };
  }
  const parts = requests.flatMap(({ request_id, message }) =>
    message.parts.map((part) => ({ ...part, metadata: { ...part.metadata, requestId: request_id } })),
  );
  return agentMessage(id, parts, {
    interruptId: id,
    requestIds: requests.map(({ request_id }) => request_id),
  });
}

export const inTask = (
  message: Message,
  { id, contextId }: Pick<StatusSource, "id" | "contextId">,
): Message => ({
  ...message,
  parts: nonEmptyParts(message),
  taskId: id,
  contextId,
});

/** An A2A message needs a part: an answer without content, or a redacted one, gets a data part. */
function nonEmptyParts({ parts, metadata }: Message): Part[] {
  const { interruptId, decision, redacted } = metadata ?? {};
  if (parts.length > 0 || interruptId === undefined) return parts;
  const data = { ...(decision !== undefined && { decision }), ...(redacted === true && { redacted }) };
  return Object.keys(data).length === 0 ? parts : [{ data }];
}

/** A2A returns results as artifacts, so a reply without artifacts is shown as one. */
export function artifactsOf({ state, artifacts, reply }: Delegation): readonly Artifact[] {
  if (artifacts.length > 0 || state !== "completed" || !reply || reply.parts.length === 0) return artifacts;
  return [{ artifactId: "reply", name: "reply", parts: reply.parts }];
}

export const statusSourceOf = (delegation: Delegation): StatusSource => ({
  id: delegation.id,
  contextId: delegation.context_id,
  state: delegation.state,
  at: delegation.updated_at,
  interrupt: delegation.interrupt,
  progress: delegation.progress,
  reply: delegation.reply,
  error: delegation.error,
});

/** The data that A2A has no member for. */
function errandMetadata({
  version,
  attempt,
  max_attempts,
  priority,
  deadline_at,
  progress,
  interrupt,
  error,
  usage,
  budget,
}: Delegation): Metadata {
  return {
    ...camelMembers({
      version,
      attempt,
      max_attempts,
      priority,
      deadline_at,
      ...(progress && { progress }),
      ...(error && { error }),
      ...(usage && { usage: usage.total }),
      ...(budget && { budget }),
    }),
    ...(interrupt && { interrupt: toInterruptJson(interrupt) }),
  };
}

/** The requests' other members are the agent's. */
export function toInterruptJson({ requests, ...head }: Interrupt): Metadata {
  return {
    ...camelMembers(head),
    requests: requests.map(({ request_id, ...request }) => ({ requestId: request_id, ...request })),
  };
}

/** The delegator's message as it was sent: only agents get the delegation's id with it. */
function withoutDelegationId({ metadata, ...message }: Message): Message {
  const { delegation_id: _ours, ...own } = metadata ?? {};
  return { ...message, ...(Object.keys(own).length > 0 && { metadata: own }) };
}

const namedRequest = ({ request_id, ...metadata }: Metadata): Metadata => ({
  ...metadata,
  ...(request_id !== undefined && { requestId: request_id }),
});

/** A message of the history. The broker's metadata of an answer gets A2A's spelling. */
function toHistoryJson(message: Message): Message {
  const { interrupt_id, ...metadata } = message.metadata ?? {};
  if (interrupt_id === undefined) return message;
  const parts = message.parts.map((part) =>
    part.metadata ? { ...part, metadata: namedRequest(part.metadata) } : part,
  );
  return { ...message, parts, metadata: { ...namedRequest(metadata), interruptId: interrupt_id } };
}

export interface TaskOptions {
  /** Only this many of the newest messages; default: all. */
  readonly historyLength?: number | undefined;
  readonly artifacts?: boolean | undefined;
}

export function toTaskJson(
  delegation: Delegation,
  { historyLength, artifacts = true }: TaskOptions = {},
): TaskJson {
  const source = statusSourceOf(delegation);
  const { message: first, history } = delegation;
  const messages = [withoutDelegationId(first), ...history.map(toHistoryJson)].map((message) =>
    inTask(message, source),
  );
  return {
    id: source.id,
    contextId: source.contextId,
    status: toStatus(source),
    artifacts: artifacts ? artifactsOf(delegation) : [],
    history:
      historyLength === undefined ? messages : historyLength === 0 ? [] : messages.slice(-historyLength),
    metadata: { ...delegation.metadata, [ERRAND_KEY]: errandMetadata(delegation) },
  };
}
