/**
 * The shared state: the application's own members, and the delegation under `errand`. Limit: it has neither the
 * texts of artifacts, which are messages, nor the progress, which is the activity.
 */
import type { Artifact, Part } from "../../schema/a2a.ts";
import type { JsonPatch } from "../../schema/ag-ui-event.ts";
import type { RunAgentInput } from "../../schema/ag-ui-input.ts";
import type { Delegation, Progress } from "../../schema/delegation.ts";
import type { Presence } from "../../schema/presence.ts";
import { artifactMessageId } from "./ids.ts";
import { artifactText } from "./messages.ts";

/** Parts that no message shows. */
const otherParts = ({ parts }: Pick<Artifact, "parts">): Part[] =>
  parts.filter(({ text }) => text === undefined);

export function artifactState(id: string, artifact: Artifact) {
  const { parts: _shown, ...head } = artifact;
  const hasText = artifactText(artifact) !== undefined;
  return {
    ...head,
    ...(hasText && { message_id: artifactMessageId(id, artifact.artifactId) }),
    parts: otherParts(artifact),
  };
}

/** The patch for a chunk of an artifact that the state has at `path`, or for an artifact that replaces it. */
export function artifactPatch(
  id: string,
  artifact: Artifact,
  { path, append, hadText }: { readonly path: string; readonly append: boolean; readonly hadText: boolean },
): JsonPatch {
  const value = artifactState(id, artifact);
  if (!append) return [{ op: "replace", path, value }];
  const { message_id, parts } = value;
  return [
    ...(message_id !== undefined && !hadText
      ? [{ op: "add" as const, path: `${path}/message_id`, value: message_id }]
      : []),
    ...parts.map((part) => ({ op: "add" as const, path: `${path}/parts/-`, value: part })),
  ];
}

export function stateOf(
  { state }: Pick<RunAgentInput, "state">,
  delegation: Delegation,
  presence: Presence,
): Record<string, unknown> {
  const { id, target, attempt, max_attempts, interrupt, artifacts, error, created_at, deadline_at } =
    delegation;
  const { usage, budget } = delegation;
  const shared = typeof state === "object" && state !== null && !Array.isArray(state) ? state : {};
  const errand = {
    ...{ delegation_id: id, agent: target, state: delegation.state, attempt, max_attempts },
    ...{ created_at, deadline_at, presence },
    ...(interrupt && { interrupt }),
    ...(error && { error }),
    ...(usage && { usage: usage.total }),
    ...(budget && { budget }),
    artifacts: artifacts.map((artifact) => artifactState(id, artifact)),
  };
  return { ...shared, errand };
}

/** The content of the activity: the progress, the state and the attempt. */
export const activityOf = ({
  state,
  attempt,
  progress,
}: {
  readonly state: string;
  readonly attempt: number;
  readonly progress: Progress | null;
}): Record<string, unknown> => ({ state, attempt, ...progress });

/** The patch that turns one object into the other, one operation for each member that differs. */
export function patchOf(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): JsonPatch {
  const gone = Object.keys(before).filter((name) => !(name in after));
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value),
  );
  return [
    ...gone.map((name) => ({ op: "remove" as const, path: `/${name}` })),
    ...changed.map(([name, value]) => ({ op: "add" as const, path: `/${name}`, value })),
  ];
}
