/**
 * AG-UI content as A2A parts, and A2A messages as the text that AG-UI shows. Limit: an agent's message
 * in AG-UI can only be text. Other content is in `RUN_FINISHED.result` and in the state.
 */
import { bodyHash } from "../../engine/delegations/idempotency.ts";
import type { Message, Part } from "../../schema/a2a.ts";
import type { AgUiMessage, ContentPart } from "../../schema/ag-ui-input.ts";

type UserContent = Extract<AgUiMessage, { role: "user" }>["content"];

function metadataOf(part: ContentPart): Pick<Part, "metadata"> {
  const { metadata } = part;
  const isObject = typeof metadata === "object" && metadata !== null && !Array.isArray(metadata);
  return isObject ? { metadata: { ...metadata } } : {};
}

function toPart(part: ContentPart): Part {
  if (part.type === "text") return { text: part.text, ...metadataOf(part) };
  const { source, type } = part;
  const mediaType = source.mimeType ?? undefined;
  const rest = { ...(mediaType !== undefined && { mediaType }), ...metadataOf(part) };
  if (source.type === "data") return { raw: source.value, ...rest };
  if (source.type === "url") return { url: source.value, ...rest };
  // Only the provider that made the handle can read it.
  const { value, provider } = source;
  return { data: { type, file: value, ...(provider && { provider }) }, ...rest };
}

export const toParts = (content: UserContent): Part[] =>
  typeof content === "string" ? [{ text: content }] : content.map(toPart);

/** Whether a user's content, as A2A parts, is these as JSON: an idempotency key compares bodies in the same way. */
export const hasParts = (content: UserContent, parts: readonly Part[]): boolean =>
  bodyHash(toParts(content)) === bodyHash(parts);

function partText({ text, url, data }: Part): string {
  return text ?? url ?? (data === undefined ? "" : JSON.stringify(data));
}

/** The message as text: its texts and URLs, and data as JSON. */
export const shownText = ({ parts }: Pick<Message, "parts">): string =>
  parts
    .map(partText)
    .filter((text) => text !== "")
    .join("\n");
