/**
 * The A2A 1.0 objects that travel verbatim: Message, Part, Artifact, in their JSON form.
 * Limit: only the fields that the broker reads are checked; the rest passes through untouched.
 */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import { fewOf } from "./values.ts";

const messageIdSchema = z.string().min(1).max(255);
/** Made by somebody else's software: refusing it would lose finished work. */
const agentsIdSchema = z.string().min(1).max(1024);

const CONTENT = ["text", "raw", "url", "data"] as const;

export const partSchema = z
  .looseObject({
    text: z.string().optional(),
    raw: z.string().optional(),
    url: z.string().optional(),
    data: z.unknown().optional(),
    mediaType: z.string().optional(),
    filename: z.string().optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
  })
  .refine((part) => CONTENT.filter((key) => key in part).length === 1, {
    error: "a part holds exactly one of text, raw, url, data",
  });

/** One piece of content: exactly one of `text`, `raw` (base64), `url` and `data` (any JSON). */
export type Part = z.infer<typeof partSchema>;

export const messageSchema = z.looseObject({
  messageId: agentsIdSchema,
  role: z.enum(["ROLE_USER", "ROLE_AGENT"]),
  parts: z.array(partSchema),
  contextId: z.string().optional(),
  taskId: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
/** An A2A 1.0 Message in its JSON form; fields beside these pass through untouched. */
export type Message = z.infer<typeof messageSchema>;

/** As a caller sends it: id and role may be left out; a message without content would be no work. */
export const messageInputSchema = messageSchema.extend({
  messageId: messageIdSchema.optional(),
  role: z.enum(["ROLE_USER", "ROLE_AGENT"]).optional(),
  parts: fewOf(partSchema, 1, LIMITS.parts.value),
});

/** A Message as it may be sent: the broker makes `messageId` and `role` if they are absent. */
export type MessageInput = z.input<typeof messageInputSchema>;

/** As an agent asks. */
export const agentMessageInputSchema = messageInputSchema.extend({ messageId: agentsIdSchema.optional() });

/** As an agent replies: absent, null or empty parts are legal. */
export const replyMessageInputSchema = agentMessageInputSchema.extend({
  parts: fewOf(partSchema, 0, LIMITS.parts.value).nullish(),
});

export const artifactSchema = z.looseObject({
  artifactId: agentsIdSchema,
  name: z.string().optional(),
  description: z.string().optional(),
  parts: z.array(partSchema),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
/** An A2A 1.0 Artifact in its JSON form: output beside the reply. `artifactId` is the agent's own choice. */
export type Artifact = z.infer<typeof artifactSchema>;

/** As an agent sends it. */
export const artifactInputSchema: z.ZodType<Artifact, Artifact> = artifactSchema.extend({
  parts: fewOf(partSchema, 0, LIMITS.parts.value),
});

/** Whether a message of a delegation's history is a follow-up: said to the agent, and no answer. */
export function isFollowUp({ role, metadata }: Message): boolean {
  return role === "ROLE_USER" && metadata?.interrupt_id === undefined;
}

/** The text parts of a message, joined by newlines. */
export function textOf(message: { readonly parts?: readonly unknown[] | null | undefined }): string {
  const texts: string[] = [];
  for (const part of message.parts ?? []) {
    if (typeof part === "object" && part !== null && "text" in part && typeof part.text === "string") {
      texts.push(part.text);
    }
  }
  return texts.join("\n");
}

interface WithMetadata {
  readonly metadata?: Record<string, unknown> | undefined;
}

/** Without `lease_id` in its metadata or its parts': agents hand back what came with the request, to be seen by none. */
export function withoutLease<
  T extends WithMetadata & { readonly parts?: readonly WithMetadata[] | null | undefined },
>(sent: T): T {
  const { parts } = sent;
  return { ...bare(sent), ...(parts && { parts: parts.map(bare) }) };
}

function bare<T extends WithMetadata>(sent: T): T {
  if (sent.metadata === undefined || !("lease_id" in sent.metadata)) return sent;
  const { lease_id: _hidden, ...metadata } = sent.metadata;
  return { ...sent, metadata };
}
