/**
 * Keeps what is streamed below the 4 MiB that A2A clients take as one line. First the history goes, then what a status
 * message repeats, then the largest artifacts give way to a URL part where the whole task can be had. Limit: sizes are
 * estimated upwards, so that they hold for the longer form of 0.3, too.
 */
import type { Artifact, Message } from "../../../schema/a2a.ts";
import { truncate } from "../../../schema/text.ts";
import { OURS, type TaskJson, type UpdateJson } from "./task.ts";

export const MAX_LINE_BYTES = 3.5 * 1024 * 1024;
/** What another form of the protocol may say more about one part or message. */
const SLACK_BYTES = 96;
const PREVIEW_CHARS = 1_000;

const partsOf = ({ parts }: { readonly parts: readonly unknown[] }): number => 1 + parts.length;

function weigh(value: unknown, pieces: number): number {
  return Buffer.byteLength(JSON.stringify(value)) + pieces * SLACK_BYTES;
}

function weighTask(task: TaskJson): number {
  const { artifacts, history, status } = task;
  const pieces = [...artifacts, ...history, ...(status.message ? [status.message] : [])];
  return weigh(
    task,
    pieces.reduce((sum, piece) => sum + partsOf(piece), 1),
  );
}

/** `url` is where the task can be read whole. */
function referenceTo(artifact: Artifact, url: string): Artifact {
  const { parts: _gone, metadata, ...rest } = artifact;
  const bytes = Buffer.byteLength(JSON.stringify(artifact));
  return {
    artifactId: rest.artifactId,
    ...(rest.name !== undefined && { name: truncate(rest.name, PREVIEW_CHARS) }),
    parts: [{ url, mediaType: "application/a2a+json" }],
    metadata: { ...(weigh(metadata ?? {}, 0) < PREVIEW_CHARS && metadata), truncated: true, bytes },
  };
}

function shortened(message: Message): Message {
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

export function boundedTask(task: TaskJson, url: string): TaskJson {
  if (weighTask(task) <= MAX_LINE_BYTES) return task;
  let small: TaskJson = { ...task, history: [], metadata: marked(task.metadata) };
  if (weighTask(small) > MAX_LINE_BYTES && small.status.message) {
    small = { ...small, status: { ...small.status, message: shortened(small.status.message) } };
  }
  if (weighTask(small) > MAX_LINE_BYTES) small = { ...small, metadata: withoutQuestion(small.metadata) };
  return withFewer(small, url);
}

/** The largest artifacts give way to references; if there are too many even for those, the last ones are left out. */
function withFewer(task: TaskJson, url: string): TaskJson {
  const sizeOf = (artifact: Artifact): number => weigh(artifact, partsOf(artifact));
  const sizes = task.artifacts.map(sizeOf);
  let total = weighTask(task);
  const artifacts = [...task.artifacts];
  const largestFirst = sizes.map((_, at) => at).sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  for (const at of largestFirst) {
    const artifact = artifacts[at];
    if (total <= MAX_LINE_BYTES || !artifact) break;
    const reference = referenceTo(artifact, url);
    const saved = (sizes[at] ?? 0) - sizeOf(reference);
    // The others are smaller still.
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
  const metadata = marked(task.metadata, { artifacts_left_out: artifacts.length - left });
  return { ...task, artifacts: artifacts.slice(0, left), metadata };
}

const ourMember = (metadata: Readonly<Record<string, unknown>>): object =>
  typeof metadata[OURS] === "object" && metadata[OURS] !== null ? metadata[OURS] : {};

const marked = (metadata: Readonly<Record<string, unknown>>, more = {}) => ({
  ...metadata,
  [OURS]: { ...ourMember(metadata), truncated: true, ...more },
});

/** The ids stay: they are what an answer needs. */
function withoutQuestion(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { interrupt, ...rest } = Object.fromEntries(Object.entries(ourMember(metadata)));
  if (typeof interrupt !== "object" || interrupt === null) return { ...metadata };
  const { requests, ...head } = Object.fromEntries(Object.entries(interrupt));
  const ids = Array.isArray(requests) ? requests.map(({ request_id }) => ({ request_id })) : [];
  return { ...metadata, [OURS]: { ...rest, interrupt: { ...head, requests: ids } } };
}

export function boundedUpdate(update: UpdateJson, url: string): UpdateJson {
  if ("task" in update) return { task: boundedTask(update.task, url) };
  if ("artifactUpdate" in update) {
    const { artifact } = update.artifactUpdate;
    if (weigh(update, partsOf(artifact)) <= MAX_LINE_BYTES) return update;
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
  if (weigh(update, status.message ? partsOf(status.message) : 0) <= MAX_LINE_BYTES) return update;
  const message = status.message && shortened(status.message);
  return {
    statusUpdate: {
      ...update.statusUpdate,
      status: { ...status, message },
      metadata: withoutQuestion(marked(metadata)),
    },
  };
}
