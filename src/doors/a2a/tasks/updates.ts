/**
 * A delegation's event as updates of an A2A stream. They depend only on the event and the artifacts sent before, so two
 * streams of one task get the same updates in the same order, on any gateway. Limit: the last event also needs the
 * record, because no event contains the reply.
 */
import * as z from "zod";
import { type Entry, isApprovedQuestion } from "../../../events/entry.ts";
import { ASKED, MOVES } from "../../../lifecycle/states.ts";
import { type Artifact, artifactSchema } from "../../../schema/a2a.ts";
import {
  type Delegation,
  delegationErrorSchema,
  interruptSchema,
  progressSchema,
  stateSchema,
} from "../../../schema/delegation.ts";
import { TERMINAL_EVENT_TYPES } from "../../../schema/event.ts";
import { usageSumSchema } from "../../../schema/usage.ts";
import { toInstant } from "../../../schema/values.ts";
import type { SentArtifacts } from "../../sent-artifacts.ts";
import { camelMembers } from "../camel-case.ts";
import {
  artifactsOf,
  ERRAND_KEY,
  type StatusSource,
  statusSourceOf,
  toInterruptJson,
  toStatus,
  type UpdateJson,
} from "./task.ts";

/** An artifact, or a placeholder after its body was replaced or dropped. */
const eventArtifactSchema = z.union([
  z.object({ artifactId: z.string(), superseded: z.literal(true) }).strict(),
  artifactSchema,
]);

/** The event's own fields, as far as A2A clients see them. */
const eventFieldsSchema = z.object({
  artifact: eventArtifactSchema.optional(),
  artifacts: z.array(eventArtifactSchema).optional(),
  append: z.boolean().optional(),
  last_chunk: z.boolean().optional(),
  progress: progressSchema.optional(),
  interrupt: interruptSchema.optional(),
  error: delegationErrorSchema.optional(),
  attempt: z.int().optional(),
  usage: usageSumSchema.omit({ complete: true }).optional(),
  retry_at: z.string().optional(),
  reason: z.string().optional(),
  /** The event dropped the record's artifacts. */
  artifacts_dropped: z.boolean().optional(),
  by: z.string().optional(),
  auto: z.boolean().optional(),
  decision: z.string().optional(),
  answer_preview: z.string().optional(),
  redacted: z.boolean().optional(),
});
type EventFields = z.infer<typeof eventFieldsSchema>;

/** Whether the artifacts sent before are gone; a retry also drops those of the failed attempt. */
const dropsArtifacts = (status: string, { artifacts_dropped }: EventFields): boolean =>
  artifacts_dropped === true || status === "retrying";

/** Whether the event may drop artifacts; if so, its updates depend on what was sent before. */
export const mayDropArtifacts = ({ status, more }: Pick<Entry, "status" | "more">): boolean =>
  ["lease_expired", "retrying", "released"].includes(status) ||
  (status === "leased" && more.includes('"artifacts_dropped":true'));

export const isTerminalEvent = ({ type }: Pick<Entry, "type">): boolean =>
  TERMINAL_EVENT_TYPES.includes(type);

/** An artifact without its content. It is still sent, because push notifications resume by counting an event's updates. */
const placeholder = (artifactId: string, why: "dropped" | "superseded"): Artifact => ({
  artifactId,
  parts: [{ text: "" }],
  metadata: { [why]: true },
});

/** `ended` is the finished record, for a terminal event. */
export function toUpdates(entry: Entry, sent: SentArtifacts, ended?: Delegation): UpdateJson[] {
  const fields = eventFieldsSchema.parse(JSON.parse(`{${entry.more}}`));
  const { delegation_id: taskId, context_id: contextId } = entry;
  const updates: UpdateJson[] = [];
  const metadata = metadataOf(entry, fields);
  const addArtifact = (artifact: Artifact, append: boolean, lastChunk: boolean, extra = {}) =>
    updates.push({
      artifactUpdate: { taskId, contextId, artifact, append, lastChunk, metadata: { ...metadata, ...extra } },
    });

  for (const artifact of [...(fields.artifact ? [fields.artifact] : []), ...(fields.artifacts ?? [])]) {
    const append = fields.append ?? false;
    const shown = "superseded" in artifact ? placeholder(artifact.artifactId, "superseded") : artifact;
    sent.add(shown, append);
    addArtifact(shown, append, fields.last_chunk ?? !append);
  }
  if (dropsArtifacts(entry.status, fields)) {
    // A2A has no update that removes an artifact; an empty, marked one comes closest.
    for (const artifactId of sent.clear()) {
      addArtifact(placeholder(artifactId, "dropped"), false, true);
    }
  }
  for (const artifact of ended ? artifactsOf(ended) : []) {
    if (!sent.has(artifact)) addArtifact(artifact, false, true);
  }
  if (entry.status !== "artifact" && !isApprovedQuestion(entry) && !isBesideQuestion(entry)) {
    const status = toStatus(ended ? statusSourceOf(ended) : statusSourceOfEntry(entry, fields));
    updates.push({ statusUpdate: { taskId, contextId, status, metadata } });
  }
  return updates;
}

/** While a question is held, a status without the question would look like another one. */
const isBesideQuestion = ({ state, status }: Entry): boolean =>
  ASKED.some((asked) => asked === state) && status !== MOVES.interrupt.status;

const statusSourceOfEntry = (entry: Entry, { interrupt, progress, error }: EventFields): StatusSource => ({
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
  { artifact: _a, artifacts: _s, append: _p, last_chunk: _l, interrupt, ...rest }: EventFields,
) {
  const own = { version: entry.seq, ...(entry.status !== "" && { status: entry.status }), ...rest };
  return {
    [ERRAND_KEY]: { ...camelMembers(own), ...(interrupt && { interrupt: toInterruptJson(interrupt) }) },
  };
}
