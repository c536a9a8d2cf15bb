/**
 * Keeps streamed tasks and updates below the 4 MiB that A2A clients accept as one line. First the history is removed,
 * then the status message is shortened, then the largest artifacts are replaced by a URL of the whole task. Sizes are
 * overestimated, so that they also hold for the longer form of 0.3.
 */
import type { Artifact, Message } from "../../../schema/a2a.ts";
import { truncate } from "../../../schema/text.ts";
import { ERRAND_KEY, type TaskJson, type UpdateJson } from "./task.ts";

export const MAX_LINE_BYTES = 3.5 * 1024 * 1024;
/** Additional bytes that 0.3 may need for one part or message. */
const SLACK_BYTES = 96;
const PREVIEW_CHARS = 1_000;

const pieceCount = ({ parts }: { readonly parts: readonly unknown[] }): number => 1 + parts.length;

function estimateBytes(value: unknown, pieces: number): number {
  return Buffer.byteLength(JSON.stringify(value)) + pieces * SLACK_BYTES;
}

function estimateTaskBytes(task: TaskJson): number {
  const { artifacts, history, status } = task;
  const pieces = [...artifacts, ...history, ...(status.message ? [status.message] : [])];
  return estimateBytes(
    task,
    pieces.reduce((sum, piece) => sum + pieceCount(piece), 1),
  );
}

/** `url` is that of the whole task. */
function referenceTo(artifact: Artifact, url: string): Artifact {
  const { parts: _replaced, metadata, ...rest } = artifact;
  const bytes = Buffer.byteLength(JSON.stringify(artifact));
  return {
    artifactId: rest.artifactId,
    ...(rest.name !== undefined && { name: truncate(rest.name, PREVIEW_CHARS) }),
    parts: [{ url, mediaType: "application/a2a+json" }],
    metadata: { ...(estimateBytes(metadata ?? {}, 0) < PREVIEW_CHARS && metadata), truncated: true, bytes },
  };
}

function shortenMessage(message: Message): Message {
  const { messageId, role, taskId, contextId } = message;
  const text = message.parts.find((part) => typeof part.text === "string")?.text ?? "";
  return {
    messageId,
    role,
    ...(taskId !== undefined && { taskId }),
    ...(contextId !== undefined && { contextId }),
    parts: [{ text: truncate(text, PREVIEW_CHARS) }],
    metadata: { truncated: true },
  };
}

export function limitTask(task: TaskJson, url: string): TaskJson {
  if (estimateTaskBytes(task) <= MAX_LINE_BYTES) return task;
  let limited: TaskJson = { ...task, history: [], metadata: markTruncated(task.metadata) };
  if (estimateTaskBytes(limited) > MAX_LINE_BYTES && limited.status.message) {
    limited = { ...limited, status: { ...limited.status, message: shortenMessage(limited.status.message) } };
  }
  if (estimateTaskBytes(limited) > MAX_LINE_BYTES)
    limited = { ...limited, metadata: withoutQuestion(limited.metadata) };
  return replaceArtifacts(limited, url);
}

/** Replaces the largest artifacts by references; if even those are too many, omits the last ones. */
function replaceArtifacts(task: TaskJson, url: string): TaskJson {
  const sizeOf = (artifact: Artifact): number => estimateBytes(artifact, pieceCount(artifact));
  const sizes = task.artifacts.map(sizeOf);
  let total = estimateTaskBytes(task);
  const artifacts = [...task.artifacts];
  const largestFirst = sizes.map((_, at) => at).sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  for (const at of largestFirst) {
    const artifact = artifacts[at];
    if (total <= MAX_LINE_BYTES || !artifact) break;
    const reference = referenceTo(artifact, url);
    const saved = (sizes[at] ?? 0) - sizeOf(reference);
    // The remaining artifacts are smaller.
    if (saved <= 0) break;
    artifacts[at] = reference;
    total -= saved;
  }
  let left = artifacts.length;
  while (total > MAX_LINE_BYTES && left > 0) {
    left -= 1;
    const last = artifacts[left];
    total -= last ? sizeOf(last) : 0;
  }
  if (left === artifacts.length) return { ...task, artifacts };
  const metadata = markTruncated(task.metadata, { artifactsLeftOut: artifacts.length - left });
  return { ...task, artifacts: artifacts.slice(0, left), metadata };
}

const errandMember = (metadata: Readonly<Record<string, unknown>>): object =>
  typeof metadata[ERRAND_KEY] === "object" && metadata[ERRAND_KEY] !== null ? metadata[ERRAND_KEY] : {};

const markTruncated = (metadata: Readonly<Record<string, unknown>>, more = {}) => ({
  ...metadata,
  [ERRAND_KEY]: { ...errandMember(metadata), truncated: true, ...more },
});

/** Keeps the ids, which an answer needs. */
function withoutQuestion(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { interrupt, ...rest } = Object.fromEntries(Object.entries(errandMember(metadata)));
  if (typeof interrupt !== "object" || interrupt === null) return { ...metadata };
  const { requests, ...head } = Object.fromEntries(Object.entries(interrupt));
  const ids = Array.isArray(requests) ? requests.map(({ requestId }) => ({ requestId })) : [];
  return { ...metadata, [ERRAND_KEY]: { ...rest, interrupt: { ...head, requests: ids } } };
}

export function limitUpdate(update: UpdateJson, url: string): UpdateJson {
  if ("task" in update) return { task: limitTask(update.task, url) };
  if ("artifactUpdate" in update) {
    const { artifact } = update.artifactUpdate;
    if (estimateBytes(update, pieceCount(artifact)) <= MAX_LINE_BYTES) return update;
    return {
      artifactUpdate: {
        ...update.artifactUpdate,
        artifact: referenceTo(artifact, url),
        append: false,
        lastChunk: true,
      },
    };
  }
  const { status, metadata } = update.statusUpdate;
  if (estimateBytes(update, status.message ? pieceCount(status.message) : 0) <= MAX_LINE_BYTES) return update;
  const message = status.message && shortenMessage(status.message);
  return {
    statusUpdate: {
      ...update.statusUpdate,
      status: { ...status, message },
      metadata: withoutQuestion(markTruncated(metadata)),
    },
  };
}
