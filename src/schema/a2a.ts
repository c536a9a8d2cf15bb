/**
 * The A2A 1.0 objects in their JSON form: Message, Part, Artifact. Limit: only the fields that the broker reads are
 * checked; all others pass through unchanged.
 */
import * as z from "zod";
import { jsonObjectSchema } from "./json-object.ts";
import { LIMITS } from "./limits.ts";
import { boundedArray } from "./values.ts";

const messageIdSchema = z.string().min(1).max(255);
/** Longer than a caller's ids, because the agent's software chooses the id, and refusing it would lose finished work. */
const agentsIdSchema = z.string().min(1).max(1024);

const CONTENT = ["text", "raw", "url", "data"] as const;

export const partSchema = z
  .looseObject({
    /** Plain text. */
    text: z.string().optional(),
    /** Bytes, in base64. */
    raw: z.string().optional(),
    /** Where the content is. The broker does not load it. */
    url: z.string().optional(),
    /** Any JSON value. */
    data: z.unknown().optional(),
    /** The media type, for example `image/png`. */
    mediaType: z.string().optional(),
    /** The file's name. */
    filename: z.string().optional(),
    /** Further members, which pass through unchanged. */
    metadata: jsonObjectSchema.optional(),
  })
  .refine((part) => CONTENT.filter((key) => key in part).length === 1, {
    error: "a part must have exactly one of text, raw, url, data",
  });

/** One piece of content: exactly one of `text`, `raw` (base64), `url` and `data` (any JSON). */
export type Part = z.infer<typeof partSchema>;

export const messageSchema = z.looseObject({
  /** Identifies the message, 1 to 1024 characters. */
  messageId: agentsIdSchema,
  /** `ROLE_USER`: from the delegator; `ROLE_AGENT`: from the agent. */
  role: z.enum(["ROLE_USER", "ROLE_AGENT"]),
  /** The content, in order. */
  parts: z.array(partSchema),
  /** The conversation, as the sender gave it. */
  contextId: z.string().optional(),
  /** The A2A task, as the sender gave it. */
  taskId: z.string().optional(),
  /** Further members. A delegation's message has its `delegation_id`, an answer its `interrupt_id`. */
  metadata: jsonObjectSchema.optional(),
});
/** An A2A 1.0 Message in its JSON form; other fields pass through unchanged. */
export type Message = z.infer<typeof messageSchema>;

/** At least one part is required. */
export const messageInputSchema = messageSchema.extend({
  /** Identifies the message, 1 to 255 characters. Default: a new id. */
  messageId: messageIdSchema.optional(),
  /** Default: the side that sends it. */
  role: z.enum(["ROLE_USER", "ROLE_AGENT"]).optional(),
  /** The content, in order: 1 to 10,000 parts. */
  parts: boundedArray(partSchema, 1, LIMITS.parts.value),
});

/** A Message as a caller sends it: the broker fills in `messageId` and `role` if they are absent. */
export type MessageInput = z.input<typeof messageInputSchema>;

/** A Message as an agent sends it in a question. */
export const agentMessageInputSchema = messageInputSchema.extend({
  /** Identifies the message, 1 to 1024 characters. Default: a new id. */
  messageId: agentsIdSchema.optional(),
});

/** A Message as an agent sends it in a reply: parts may be absent, null or empty. */
export const replyMessageInputSchema = agentMessageInputSchema.extend({
  /** The content, in order: up to 10,000 parts. Absent and null mean none. */
  parts: boundedArray(partSchema, 0, LIMITS.parts.value).nullish(),
});

export const artifactSchema = z.looseObject({
  /** Chosen by the agent, 1 to 1024 characters. */
  artifactId: agentsIdSchema,
  /** For people, for example a file name. */
  name: z.string().optional(),
  /** What it is, for people. */
  description: z.string().optional(),
  /** The content, in order. */
  parts: z.array(partSchema),
  /** Further members, which pass through unchanged. */
  metadata: jsonObjectSchema.optional(),
});
/** An A2A 1.0 Artifact in its JSON form: output in addition to the reply. The agent chooses `artifactId`. */
export type Artifact = z.infer<typeof artifactSchema>;

/** An Artifact as an agent sends it. */
export const artifactInputSchema: z.ZodType<Artifact, Artifact> = artifactSchema.extend({
  /** The content, in order: up to 10,000 parts. */
  parts: boundedArray(partSchema, 0, LIMITS.parts.value),
});

/** Whether a message of a delegation's history is a follow-up: sent to the agent, and not an answer. */
export function isFollowUp({ role, metadata }: Message): boolean {
  return role === "ROLE_USER" && metadata?.interrupt_id === undefined;
}

/**
 * The text parts of a message, each on a line of its own; those of an artifact as one text, because an agent sends it in
 * chunks that may end anywhere.
 */
export function textOf(content: {
  readonly parts?: readonly unknown[] | null | undefined;
  readonly artifactId?: unknown;
}): string {
  const texts: string[] = [];
  for (const part of content.parts ?? []) {
    if (typeof part === "object" && part !== null && "text" in part && typeof part.text === "string") {
      texts.push(part.text);
    }
  }
  return texts.join(content.artifactId === undefined ? "\n" : "");
}

interface WithMetadata {
  readonly metadata?: Record<string, unknown> | undefined;
}

/** Removes `lease_id` from the metadata of a message and its parts: agents echo it, and no reader may see it. */
export function withoutLease<
  T extends WithMetadata & { readonly parts?: readonly WithMetadata[] | null | undefined },
>(sent: T): T {
  const { parts } = sent;
  return { ...withoutLeaseMetadata(sent), ...(parts && { parts: parts.map(withoutLeaseMetadata) }) };
}

function withoutLeaseMetadata<T extends WithMetadata>(sent: T): T {
  if (sent.metadata === undefined || !("lease_id" in sent.metadata)) return sent;
  const { lease_id: _hidden, ...metadata } = sent.metadata;
  return { ...sent, metadata };
}
