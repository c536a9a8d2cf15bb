/**
 * The defects of the A2A SDK (1.3.0), and where each one is worked around:
 *
 * 1. Its codecs check nothing: a role "user" becomes -1, an empty part passes, `"false"` is true, a page size of "x" is
 *    NaN, bad base64 is empty. We check everything before (params.ts, v03/params.ts).
 * 2. They drop a part whose `data` is null. {@link withNullData} puts it back, in both directions.
 * 3. Its JSON-RPC handlers answer -32602 to invalid JSON, a bad envelope and a batch, and reveal the message of an
 *    unexpected exception. We check envelopes before, and keep and render the errors of our handler
 *    (bindings/rpc.ts, errors.ts).
 * 4. A version must match exactly, including the patch, and the query parameter is ignored (version.ts).
 * 5. A tenant in both the request and the context throws: the context's stays unset, as the path identifies the agent.
 * 6. `JSON.stringify` of a card is not its JSON form (security schemes keep `$case`), and a signature over the object
 *    omits them: cards are served and signed as `AgentCard.toJSON` returns them (cards/).
 * 7. Its REST handler is not exported, and that of 0.3 uses the JSON Schema's objects where the wire has the
 *    protobuf's (bindings/rest.ts, v03/wire.ts).
 * 8. Its client cuts a stream at a line of 4 MiB: streams are bounded (tasks/size-limit.ts).
 * 9. A generator does not learn that its reader disconnected: the handler's own signal ends it (handler.ts).
 * 10. In 0.3 it marks only an end as a stream's last update, not a question, which also ends it: {@link markFinalV03}.
 *
 * Check this list after an update of the SDK.
 */
import { AgentCard, Artifact, Message, Part, type StreamResponse, Task } from "@a2a-js/sdk";
import * as z from "zod";
import type { Artifact as ArtifactJson, Message as MessageJson } from "../../schema/a2a.ts";
import type { TaskJson, UpdateJson } from "./tasks/task.ts";

interface WithParts {
  readonly parts: readonly unknown[];
}

const isNullData = (part: unknown): boolean =>
  typeof part === "object" && part !== null && "data" in part && part.data === null;

/** Puts back the parts whose data is null, which the codec drops; `from` is the JSON that was decoded. */
function withNullData<T extends { parts: Part[] }>(decoded: T, from: WithParts): T {
  for (const [at, part] of decoded.parts.entries()) {
    if (part.content === undefined && isNullData(from.parts[at]))
      part.content = { $case: "data", value: null };
  }
  return decoded;
}

/** A2A requires a part, and agents may send none: then there is one without text. The codec would omit the empty list. */
function withPart<T extends { parts: Part[] }>(decoded: T): T {
  if (decoded.parts.length === 0) decoded.parts.push(Part.fromJSON({ text: "" }));
  return decoded;
}

export const toMessage = (json: MessageJson): Message => withPart(withNullData(Message.fromJSON(json), json));
const toArtifact = (json: ArtifactJson): Artifact => withPart(withNullData(Artifact.fromJSON(json), json));

export function toTask(json: TaskJson): Task {
  const { artifacts, history, status, ...rest } = json;
  const task = Task.fromJSON({ ...rest, status: { ...status, message: undefined } });
  task.artifacts = artifacts.map(toArtifact);
  task.history = history.map(toMessage);
  if (task.status && status.message) task.status.message = toMessage(status.message);
  return task;
}

export function toStreamResponse(update: UpdateJson): StreamResponse {
  if ("task" in update) return { payload: { $case: "task", value: toTask(update.task) } };
  if ("statusUpdate" in update) {
    const { taskId, contextId, status, metadata } = update.statusUpdate;
    const { status: decoded } = toTask({
      id: taskId,
      contextId,
      status,
      artifacts: [],
      history: [],
      metadata: {},
    });
    return { payload: { $case: "statusUpdate", value: { taskId, contextId, status: decoded, metadata } } };
  }
  const { artifact, ...rest } = update.artifactUpdate;
  return { payload: { $case: "artifactUpdate", value: { ...rest, artifact: toArtifact(artifact) } } };
}

const rawMessage = z.object({ message: z.object({ parts: z.array(z.unknown()) }) });

/** The message of a checked request in its canonical JSON form. `rawParams` are a 1.0 request's original params. */
export function toMessageJson(message: Message, rawParams?: unknown): unknown {
  const raw = rawMessage.safeParse(rawParams);
  return Message.toJSON(raw.success ? withNullData(message, raw.data.message) : message);
}

/** A card's JSON form, under the type that the SDK's signing expects. */
export const cardJson = (card: AgentCard): AgentCard => z.custom<AgentCard>().parse(AgentCard.toJSON(card));

const updateV03 = z.looseObject({
  kind: z.literal("status-update"),
  status: z.looseObject({ state: z.literal("input-required") }),
});

/** A 0.3 update; a question is marked as the last of its stream. */
export function markFinalV03<T extends object>(update: T): T {
  return updateV03.safeParse(update).success ? { ...update, final: true } : update;
}
