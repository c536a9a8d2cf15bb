/**
 * An event of a delegation as updates of an A2A stream. Pure but for what was told before: two streams of one task get
 * the same updates in the same order, on whichever gateways. Limit: an end needs the record, which does not change any
 * more: the reply stands in no event.
 */
import { z } from "zod";
import type { Entry } from "../../../events/entry.ts";
import { type Artifact, artifactSchema } from "../../../schema/a2a.ts";
import {
  type Delegation,
  delegationErrorSchema,
  interruptSchema,
  progressSchema,
  stateSchema,
} from "../../../schema/delegation.ts";
import { TERMINAL_EVENT_TYPES } from "../../../schema/event.ts";
import { toInstant } from "../../../schema/values.ts";
import type { Told } from "./sent-artifacts.ts";
import { type About, aboutOf, artifactsOf, OURS, toStatus, type UpdateJson } from "./task.ts";

/** An artifact, or its stand-in after its body was replaced or dropped. */
const shownSchema = z.union([
  z.object({ artifactId: z.string(), superseded: z.literal(true) }).strict(),
  artifactSchema,
]);

/** What belongs to an event beside its envelope, as far as A2A clients are told of it. */
const moreSchema = z.object({
  artifact: shownSchema.optional(),
  artifacts: z.array(shownSchema).optional(),
  append: z.boolean().optional(),
  last_chunk: z.boolean().optional(),
  progress: progressSchema.optional(),
  interrupt: interruptSchema.optional(),
  error: delegationErrorSchema.optional(),
  attempt: z.int().optional(),
  retry_at: z.string().optional(),
  reason: z.string().optional(),
  /** The record's artifacts are gone with this event. */
  artifacts_dropped: z.boolean().optional(),
  by: z.string().optional(),
  decision: z.string().optional(),
  answer_preview: z.string().optional(),
  redacted: z.boolean().optional(),
});
type More = z.infer<typeof moreSchema>;

/** What a reply brought that is tried again was never kept. */
const forgets = (status: string, { artifacts_dropped }: More): boolean =>
  artifacts_dropped === true || status === "retrying";

/** Whether an event may tell of artifacts that are gone; then what was told before it has to be known. */
export const mayForget = ({ status }: Pick<Entry, "status">): boolean =>
  ["lease_expired", "retrying", "released"].includes(status);

export const isEnd = ({ type }: Pick<Entry, "type">): boolean => TERMINAL_EVENT_TYPES.includes(type);

/** An artifact whose content is gone. It is still sent, because a push resumes by the number of an event's updates. */
const emptied = (artifactId: string, why: "dropped" | "superseded"): Artifact => ({
  artifactId,
  parts: [{ text: "" }],
  metadata: { [why]: true },
});

/** `ended` is the record behind an end. */
export function toUpdates(entry: Entry, told: Told, ended?: Delegation): UpdateJson[] {
  const more = moreSchema.parse(JSON.parse(`{${entry.more}}`));
  const { delegation_id: taskId, context_id: contextId } = entry;
  const updates: UpdateJson[] = [];
  const metadata = metadataOf(entry, more);
  const tell = (artifact: Artifact, append: boolean, lastChunk: boolean, extra = {}) =>
    updates.push({
      artifactUpdate: { taskId, contextId, artifact, append, lastChunk, metadata: { ...metadata, ...extra } },
    });

  for (const artifact of [...(more.artifact ? [more.artifact] : []), ...(more.artifacts ?? [])]) {
    const append = more.append ?? false;
    const shown = "superseded" in artifact ? emptied(artifact.artifactId, "superseded") : artifact;
    told.note(shown, append);
    tell(shown, append, more.last_chunk ?? !append);
  }
  if (forgets(entry.status, more)) {
    // There is no update that takes an artifact away; one without content, and marked, comes closest.
    for (const artifactId of told.drop()) {
      tell(emptied(artifactId, "dropped"), false, true);
    }
  }
  for (const artifact of ended ? artifactsOf(ended) : []) {
    if (!told.has(artifact)) tell(artifact, false, true);
  }
  if (entry.status !== "artifact") {
    const status = toStatus(ended ? aboutOf(ended) : aboutEntry(entry, more));
    updates.push({ statusUpdate: { taskId, contextId, status, metadata } });
  }
  return updates;
}

const aboutEntry = (entry: Entry, { interrupt, progress, error }: More): About => ({
  id: entry.delegation_id,
  contextId: entry.context_id,
  state: stateSchema.parse(entry.state),
  at: toInstant(entry.at),
  interrupt,
  progress,
  error,
});

function metadataOf(
  entry: Entry,
  { artifact: _a, artifacts: _s, append: _p, last_chunk: _l, ...rest }: More,
) {
  return { [OURS]: { version: entry.seq, ...(entry.status !== "" && { status: entry.status }), ...rest } };
}
