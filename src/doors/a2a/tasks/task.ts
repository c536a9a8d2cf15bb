/**
 * A delegation as an A2A Task, in its JSON form. Pure: the same delegation is the same task on every gateway and at
 * every look. Limit: of any size; what is streamed goes through size-limit.ts.
 */
import { createHash } from "node:crypto";
import type { Artifact, Message, Part } from "../../../schema/a2a.ts";
import { type A2aStateName, toA2aState } from "../../../schema/a2a-task.ts";
import type { Delegation, DelegationError, Interrupt, Progress } from "../../../schema/delegation.ts";

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

/** Under which name the broker's own stands in metadata, beside what others put there. */
export const OURS = "errand";

/** Where a status stands: whose it is, and what belongs to it. */
export interface About {
  readonly id: string;
  readonly contextId: string;
  readonly state: Delegation["state"];
  readonly at: string;
  readonly interrupt?: Interrupt | null | undefined;
  readonly progress?: Progress | null | undefined;
  readonly reply?: Message | null | undefined;
  readonly error?: DelegationError | null | undefined;
}

/** The state with its message: the question, the progress, the reply or what went wrong. */
export function toStatus(about: About): StatusJson {
  const message = spokenOf(about);
  return {
    state: toA2aState(about.state),
    ...(message && { message: placed(message, about) }),
    timestamp: about.at,
  };
}

function spokenOf({ id, state, interrupt, progress, reply, error }: About): Message | undefined {
  if (state === "input_required" || state === "auth_required")
    return interrupt ? questionOf(interrupt) : undefined;
  if (state === "working") return progress?.message ? progressOf(id, progress) : undefined;
  if (state === "submitted") return undefined;
  if (reply) return reply;
  return error ? said(`${id}:error`, [{ text: error.message }]) : undefined;
}

const said = (messageId: string, parts: Part[], metadata?: Metadata): Message => ({
  messageId,
  role: "ROLE_AGENT",
  parts,
  ...(metadata && { metadata }),
});

/** The same words at the same point have the same id, in a snapshot as in an event. */
function progressOf(id: string, progress: Progress): Message {
  const hash = createHash("sha256")
    .update(JSON.stringify([id, progress]))
    .digest("hex")
    .slice(0, 32);
  return said(`prg_${hash}`, [{ text: progress.message ?? "" }]);
}

/** One message for all that is asked; each part names its request, and an answer does likewise. */
function questionOf({ id, requests }: Interrupt): Message {
  const [first, second] = requests;
  if (first && !second) {
    const { message, request_id } = first;
    return { ...message, metadata: { ...message.metadata, interrupt_id: id, request_id } };
  }
  const parts = requests.flatMap(({ request_id, message }) =>
    message.parts.map((part) => ({ ...part, metadata: { ...part.metadata, request_id } })),
  );
  return said(id, parts, { interrupt_id: id, request_ids: requests.map(({ request_id }) => request_id) });
}

const placed = (message: Message, { id, contextId }: Pick<About, "id" | "contextId">): Message => ({
  ...message,
  parts: partsOf(message),
  taskId: id,
  contextId,
});

/** An A2A message needs a part: an answer without text, or a secret one, gets a data part that says so. */
function partsOf({ parts, metadata }: Message): Part[] {
  const { interrupt_id, decision, redacted } = metadata ?? {};
  if (parts.length > 0 || interrupt_id === undefined) return parts;
  const data = { ...(decision !== undefined && { decision }), ...(redacted === true && { redacted }) };
  return Object.keys(data).length === 0 ? parts : [{ data }];
}

/** Where the agent sent no artifact, its reply is one: messages are no place for results. */
export function artifactsOf({ state, artifacts, reply }: Delegation): readonly Artifact[] {
  if (artifacts.length > 0 || state !== "completed" || !reply || reply.parts.length === 0) return artifacts;
  return [{ artifactId: "reply", name: "reply", parts: reply.parts }];
}

export const aboutOf = (delegation: Delegation): About => ({
  id: delegation.id,
  contextId: delegation.context_id,
  state: delegation.state,
  at: delegation.updated_at,
  interrupt: delegation.interrupt,
  progress: delegation.progress,
  reply: delegation.reply,
  error: delegation.error,
});

/** What A2A has no member for. */
function ours({ version, attempt, max_attempts, progress, interrupt, error }: Delegation): Metadata {
  return {
    version,
    attempt,
    max_attempts,
    ...(progress && { progress }),
    ...(interrupt && { interrupt }),
    ...(error && { error }),
  };
}

export interface Shown {
  /** The newest so many messages; all of them when it is absent. */
  readonly historyLength?: number | undefined;
  readonly artifacts?: boolean | undefined;
}

export function toTaskJson(
  delegation: Delegation,
  { historyLength, artifacts = true }: Shown = {},
): TaskJson {
  const about = aboutOf(delegation);
  const spoken = [delegation.message, ...delegation.history].map((message) => placed(message, about));
  return {
    id: about.id,
    contextId: about.contextId,
    status: toStatus(about),
    artifacts: artifacts ? artifactsOf(delegation) : [],
    history: historyLength === undefined ? spoken : historyLength === 0 ? [] : spoken.slice(-historyLength),
    metadata: { ...delegation.metadata, [OURS]: ours(delegation) },
  };
}
