/** The fields of an event that a run shows, and how the event changes history and artifacts. */
import * as z from "zod";
import type { Entry } from "../../events/entry.ts";
import { type Artifact, artifactSchema } from "../../schema/a2a.ts";
import { delegationErrorSchema, progressSchema } from "../../schema/delegation.ts";
import { jsonObjectSchema } from "../../schema/json-object.ts";

/** An artifact, or a placeholder after its body was replaced or dropped. */
const eventArtifactSchema = z.union([
  z.object({ artifactId: z.string(), superseded: z.literal(true) }).strict(),
  artifactSchema,
]);

const entryFieldsSchema = z.object({
  artifact: eventArtifactSchema.optional(),
  artifacts: z.array(eventArtifactSchema).optional(),
  append: z.boolean().optional(),
  last_chunk: z.boolean().optional(),
  progress: progressSchema.optional(),
  attempt: z.int().optional(),
  artifacts_dropped: z.boolean().optional(),
  interrupt: z.object({ requests: z.array(z.unknown()) }).optional(),
  auto: z.boolean().optional(),
  again: z.boolean().optional(),
  answers: jsonObjectSchema.optional(),
  error: delegationErrorSchema.optional(),
});
export type EntryFields = z.infer<typeof entryFieldsSchema>;

export const fieldsOf = ({ more }: Pick<Entry, "more">): EntryFields =>
  entryFieldsSchema.parse(JSON.parse(`{${more}}`));

/** The artifacts that the event adds. Those whose bodies are gone are left out: what replaced or dropped them follows. */
export function artifactsOf(entry: Pick<Entry, "status">, fields: EntryFields): readonly Artifact[] {
  if (dropsArtifacts(entry, fields)) return [];
  const { artifact, artifacts = [] } = fields;
  return [...(artifact ? [artifact] : []), ...artifacts].flatMap((one) => ("superseded" in one ? [] : [one]));
}

/** Whether the event removed artifacts; a retry also drops what came with the failure. */
export const dropsArtifacts = (
  { status }: Pick<Entry, "status">,
  { artifacts_dropped }: EntryFields,
): boolean => artifacts_dropped === true || status === "retrying";

/** How many messages the event added to the history. */
export function historyAdded(
  { status }: Pick<Entry, "status">,
  { again, interrupt, answers }: EntryFields,
): number {
  if (status === "interrupted") return again ? 0 : (interrupt?.requests.length ?? 0);
  if (status === "answered" || status === "voted") return Object.keys(answers ?? {}).length;
  return status === "message" ? 1 : 0;
}
