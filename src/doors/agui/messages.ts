/**
 * A delegation as messages: its task, its history with the texts of its artifacts in between, its reply. A pure
 * function, so every gateway shows the same. Limit: an artifact's other parts are in the state.
 */
import type { Broker } from "../../engine/broker.ts";
import { storedEvents } from "../../engine/events/subscribe.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Artifact, Message } from "../../schema/a2a.ts";
import type { AgUiEvent } from "../../schema/ag-ui-event.ts";
import { type AgUiMessage, agUiMessageSchema, type RunAgentInput } from "../../schema/ag-ui-input.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { hasParts, shownText } from "./content.ts";
import { dropsArtifacts, fieldsOf, historyAdded } from "./entry-fields.ts";
import { artifactMessageId, messageIdOf, replyId } from "./ids.ts";

/** For each artifact id, the length of the history when the artifact began. */
export type Places = ReadonlyMap<string, number>;

/** The metadata that links a message or event to its delegation. */
export const metadataOf = (delegation_id: string, more: Record<string, unknown> = {}) => ({
  errand: { delegation_id, ...more },
});

/** The text of an artifact, without separators, because it may have come in pieces. */
export const artifactText = ({ parts }: Pick<Artifact, "parts">): string | undefined => {
  const texts = parts.flatMap(({ text }) => text ?? []);
  return texts.length === 0 ? undefined : texts.join("");
};

/** The text of an answer, or a placeholder if it is hidden. */
function answerText(message: Message): string {
  const { decision, redacted } = message.metadata ?? {};
  if (redacted === true) return typeof decision === "string" ? decision : "(hidden)";
  const text = shownText(message);
  return text === "" && typeof decision === "string" ? decision : text;
}

const NOTED = ["interrupt_id", "request_id", "decision", "by", "auto", "vote", "at", "redacted"];

/** Whether the client sent this message: the input has one with its id and parts. */
type IsSent = (message: Message) => boolean;

function fromHistory(id: string, message: Message, isSent: IsSent): AgUiMessage {
  const noted = Object.entries(message.metadata ?? {}).filter(([name]) => NOTED.includes(name));
  const metadata = metadataOf(id, Object.fromEntries(noted));
  // A follow-up that this client sent keeps the client's id.
  const own = isSent(message) ? message.messageId : messageIdOf(id, message.messageId);
  if (message.role === "ROLE_AGENT")
    return { id: own, role: "assistant", content: shownText(message), metadata };
  return { id: own, role: "user", content: answerText(message), metadata };
}

export function artifactMessage(id: string, { artifactId }: Pick<Artifact, "artifactId">, content: string) {
  const metadata = metadataOf(id, { artifact_id: artifactId });
  return { id: artifactMessageId(id, artifactId), role: "assistant" as const, content, metadata };
}

/** Undefined if the reply has nothing to show. */
export function replyMessage({ id, reply }: Pick<Delegation, "id" | "reply">) {
  const content = reply === null ? "" : shownText(reply);
  if (content === "") return undefined;
  return { id: replyId(id), role: "assistant" as const, content, metadata: metadataOf(id) };
}

function ownMessages(
  delegation: Delegation,
  places: Places,
  isSent: IsSent,
  keepsTaskId: boolean,
): AgUiMessage[] {
  const { id, message, history, artifacts } = delegation;
  const shown = artifacts.flatMap((artifact) => {
    const text = artifactText(artifact);
    const place = places.get(artifact.artifactId) ?? history.length;
    return text === undefined ? [] : [{ place, shown: artifactMessage(id, artifact, text) }];
  });
  const at = (index: number) => shown.filter(({ place }) => place === index).map((one) => one.shown);
  const reply = replyMessage(delegation);
  return [
    {
      // Otherwise the message gets an id of the broker, so that it does not look like new work.
      id: isSent(message) || keepsTaskId ? message.messageId : messageIdOf(id, message.messageId),
      role: "user",
      content: shownText(message),
    },
    ...history.flatMap((one, index) => [...at(index), fromHistory(id, one, isSent)]),
    ...shown.filter(({ place }) => place >= history.length).map((one) => one.shown),
    ...(reply ? [reply] : []),
  ];
}

/** A message without optional members that are null, as some clients send them. */
const withoutNulls = (message: AgUiMessage): AgUiMessage =>
  agUiMessageSchema.parse(Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)));

/**
 * All messages of the thread that this run knows. First those of its input, of which this delegation's are updated; then
 * those that the client lacks. A client drops every message that is not listed.
 */
export function threadMessages(
  input: Pick<RunAgentInput, "messages">,
  delegation: Delegation,
  { places, keepsTaskId }: { readonly places: Places; readonly keepsTaskId: boolean },
): AgUiMessage[] {
  const given = input.messages.filter(({ role }) => role !== "activity").map(withoutNulls);
  const sent = new Map(given.map((message) => [message.id, message]));
  const isSent = ({ messageId, role, parts }: Message): boolean => {
    const same = role === "ROLE_USER" ? sent.get(messageId) : undefined;
    return same?.role === "user" && hasParts(same.content, parts);
  };
  const own = ownMessages(delegation, places, isSent, keepsTaskId);
  const byId = new Map(own.map((message) => [message.id, message]));
  const isGone = ({ id }: AgUiMessage) => id.startsWith(`${delegation.id}/`) && !byId.has(id);
  const kept = given.filter((message) => !isGone(message));
  const seen = new Set(kept.map(({ id }) => id));
  return [
    // A message of the user stays as the client has it.
    ...kept.map((message) =>
      message.id.startsWith(`${delegation.id}/`) ? (byId.get(message.id) ?? message) : message,
    ),
    ...own.filter(({ id }) => !seen.has(id)),
  ];
}

/** The text messages of a run that have begun and not ended. A message that ended may begin again, to be continued. */
interface TextMessage {
  readonly id: string;
  readonly content: string;
  readonly role: "assistant";
  readonly metadata: Record<string, unknown>;
}

export class TextMessages {
  readonly #open = new Set<string>();

  /** Adds the content to the message; `isWhole`: nothing follows. */
  *add({ id, content, role, metadata }: TextMessage, isWhole: boolean): Generator<AgUiEvent> {
    if (!this.#open.has(id)) yield { type: "TEXT_MESSAGE_START", messageId: id, role, metadata };
    this.#open.add(id);
    yield { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta: content };
    if (isWhole) yield* this.close(id);
  }

  *close(id: string): Generator<AgUiEvent> {
    if (this.#open.delete(id)) yield { type: "TEXT_MESSAGE_END", messageId: id };
  }

  *closeAll(): Generator<AgUiEvent> {
    for (const id of [...this.#open]) yield* this.close(id);
  }
}

/**
 * The places of artifacts among the messages of the history. The record has both, but only the events have their order.
 * Limit: if a lost lease dropped some artifacts, those that remain are placed at the end.
 */
export async function placesOf(
  broker: Broker,
  record: StoredDelegation,
  { history, artifacts }: Delegation,
  signal: StopSignal,
): Promise<Places> {
  const places = new Map<string, number>();
  // The usual case has only one of the two, so there is no order to find.
  if (history.length === 0 || artifacts.length === 0) return places;
  let length = 0;
  for await (const entry of storedEvents(broker, record, signal)) {
    const fields = fieldsOf(entry);
    if (dropsArtifacts(entry, fields)) places.clear();
    const { artifact, artifacts: more = [] } = fields;
    for (const { artifactId } of artifact ? [artifact, ...more] : more) {
      if (!places.has(artifactId)) places.set(artifactId, length);
    }
    length += historyAdded(entry, fields);
  }
  return places;
}
