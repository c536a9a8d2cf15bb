/**
 * The one place that knows where the A2A SDK (1.3.0) falls short, and goes round it:
 *
 * 1. Its codecs check nothing: a role "user" becomes -1, an empty part passes, `"false"` is true, a page size of "x" is
 *    NaN, bad base64 is empty. Everything is checked before (params.ts, params-v03.ts).
 * 2. They drop a part whose `data` is null. {@link repaired} puts it back, in both directions.
 * 3. Its JSON-RPC handlers answer a body that is no JSON with -32602, and a bad envelope or a batch, too; and show what
 *    an unexpected exception says. Envelopes are checked before, and what our handler throws is kept and rendered here
 *    (rpc.ts, errors.ts), whatever the SDK makes of it.
 * 4. A version has to match to the letter, patch and all, and the query parameter is not looked at (version.ts).
 * 5. A tenant that is set twice is an exception: the context's is left unset, agents are told apart by path.
 * 6. `JSON.stringify` of a card is not its JSON form (security schemes keep `$case`), and a signature over the object
 *    leaves them out: cards are served and signed as `AgentCard.toJSON` gives them (card.ts, signing.ts).
 * 7. Its REST handler is not exported, and that of 0.3 speaks the JSON Schema's objects where the wire has the
 *    protobuf's (rest.ts, wire-v03.ts).
 * 8. It cuts a stream at a line of 4 MiB: what is streamed is bounded (bounded.ts).
 * 9. A generator is not told that its reader left: the handler's own signal ends it (handler.ts).
 * 10. In 0.3 it marks as the last of a stream only an end, not a question, which ends a stream, too: {@link lastV03}.
 *
 * Limit: each is as seen in 1.3.0; after an update of the SDK this list is to be gone through.
 */
import { AgentCard, Artifact, Message, type Part, type StreamResponse, Task } from "@a2a-js/sdk";
import { z } from "zod";
import type { Artifact as ArtifactJson, Message as MessageJson } from "../../schema/a2a.ts";
import type { TaskJson, UpdateJson } from "./tasks/task.ts";

interface WithParts {
  readonly parts: readonly unknown[];
}

const isNullData = (part: unknown): boolean =>
  typeof part === "object" && part !== null && "data" in part && part.data === null;

/** The decoded parts, with a content of null where `from` has one and the codec saw none. */
function repaired<T extends { parts: Part[] }>(decoded: T, from: WithParts): T {
  for (const [at, part] of decoded.parts.entries()) {
    if (part.content === undefined && isNullData(from.parts[at]))
      part.content = { $case: "data", value: null };
  }
  return decoded;
}

const toMessage = (json: MessageJson): Message => repaired(Message.fromJSON(json), json);
const toArtifact = (json: ArtifactJson): Artifact => repaired(Artifact.fromJSON(json), json);

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

/** The message of a checked request in its canonical JSON form; `raw` are the params as they came, where they are 1.0. */
export function toMessageJson(message: Message, raw?: unknown): unknown {
  const found = rawMessage.safeParse(raw);
  return Message.toJSON(found.success ? repaired(message, found.data.message) : message);
}

/** A card's JSON form, still under the type that the SDK's signing asks for. */
export const cardJson = (card: AgentCard): AgentCard => z.custom<AgentCard>().parse(AgentCard.toJSON(card));

const updateV03 = z.looseObject({
  kind: z.literal("status-update"),
  status: z.looseObject({ state: z.literal("input-required") }),
});

/** An update of 0.3, marked as the last of its stream where it is. */
export function lastV03<T extends object>(update: T): T {
  return updateV03.safeParse(update).success ? { ...update, final: true } : update;
}
