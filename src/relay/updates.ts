/**
 * Converts the SDK's objects to the broker's A2A 1.0 JSON. Parts without content are dropped, and an unknown role counts
 * as the agent's; any other violation of the broker's schemas is refused.
 */
import {
  Artifact as A2aArtifact,
  Message as A2aMessage,
  type StreamResponse,
  type Task,
  type TaskStatus,
} from "@a2a-js/sdk";
import { type Artifact, artifactSchema, type Message, messageSchema, withoutLease } from "../schema/a2a.ts";
import { fromA2aState, type KnownA2aState } from "../schema/a2a-task.ts";
import { LIMITS } from "../schema/limits.ts";
import { RemoteError } from "./remote-error.ts";

export interface RemoteStatus {
  /** Undefined if the server sent none, or an unknown one. */
  readonly state: KnownA2aState | undefined;
  readonly message: Message | undefined;
  readonly timestamp: string | undefined;
}

export interface RemoteTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: RemoteStatus;
  readonly artifacts: readonly Artifact[];
  readonly history: readonly Message[];
}

export type Update =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "task"; readonly task: RemoteTask }
  | {
      readonly kind: "status";
      readonly id: string;
      readonly contextId: string;
      readonly status: RemoteStatus;
    }
  | {
      readonly kind: "artifact";
      readonly id: string;
      readonly contextId: string;
      readonly artifact: Artifact;
      readonly append: boolean;
      readonly lastChunk: boolean;
    };

/** The depth limit of a request body, minus the levels around a part. */
const MAX_DEPTH = LIMITS.json_depth.value - 8;

function isDeeper(value: unknown, left: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return left === 0 || Object.values(value).some((member) => isDeeper(member, left - 1));
}

const CONTENT = ["text", "raw", "url", "data"];

function hasContent(part: unknown): boolean {
  return typeof part === "object" && part !== null && CONTENT.some((name) => name in part);
}

function withParts(value: unknown): Record<string, unknown> {
  const members: Record<string, unknown> = typeof value === "object" && value !== null ? { ...value } : {};
  const parts: unknown[] = Array.isArray(members.parts) ? members.parts : [];
  return { ...members, parts: parts.filter(hasContent) };
}

const ROLE_USER = 1;

export function toMessage(message: A2aMessage, fallbackId: string): Message {
  const json = withParts(A2aMessage.toJSON(message));
  const role = message.role === ROLE_USER ? "ROLE_USER" : "ROLE_AGENT";
  const parsed = messageSchema.safeParse({ ...json, role, messageId: message.messageId || fallbackId });
  if (!parsed.success || isDeeper(json, MAX_DEPTH))
    throw new RemoteError("broken", "a message of the A2A server is not valid A2A");
  return withoutLease(parsed.data);
}

function toArtifact(artifact: A2aArtifact, index: number): Artifact {
  const artifactId = artifact.artifactId || `artifact-${index + 1}`;
  const json = withParts(A2aArtifact.toJSON(artifact));
  const parsed = artifactSchema.safeParse({ ...json, artifactId });
  if (!parsed.success || isDeeper(json, MAX_DEPTH))
    throw new RemoteError("broken", "an artifact of the A2A server is not valid A2A");
  return withoutLease(parsed.data);
}

function toStatus(status: TaskStatus | undefined, taskId: string): RemoteStatus {
  const { state, message, timestamp } = status ?? {};
  return {
    state: fromA2aState(state),
    message: message && toMessage(message, `${taskId}.${timestamp ?? state}`),
    timestamp,
  };
}

export function toTask({ id, contextId, status, artifacts, history }: Task): RemoteTask {
  if (id === "") throw new RemoteError("broken", "a task of the A2A server has no id");
  return {
    id,
    contextId,
    status: toStatus(status, id),
    artifacts: artifacts.map(toArtifact),
    history: history.map((message, index) => toMessage(message, `${id}.${index}`)),
  };
}

/** Undefined for an empty or unknown update. */
export function toUpdate({ payload }: StreamResponse): Update | undefined {
  switch (payload?.$case) {
    case "message":
      return { kind: "message", message: toMessage(payload.value, "reply") };
    case "task":
      return { kind: "task", task: toTask(payload.value) };
    case "statusUpdate": {
      const { taskId: id, contextId, status } = payload.value;
      return { kind: "status", id, contextId, status: toStatus(status, id) };
    }
    case "artifactUpdate": {
      const { taskId: id, contextId, artifact, append, lastChunk } = payload.value;
      if (!artifact) return undefined;
      return { kind: "artifact", id, contextId, artifact: toArtifact(artifact, 0), append, lastChunk };
    }
    default:
      return undefined;
  }
}
