/**
 * Messages and artifacts within a byte budget. Text is cut; data, URLs and files are whole or omitted. Whatever is missing is marked as truncated, or counted.
 */
import * as z from "zod";
import { preview } from "../../../engine/delegations/preview.ts";
import { type Artifact, type Message, textOf } from "../../../schema/a2a.ts";
import { linkTo, type ResourceLink } from "../resources.ts";

export const contentViewSchema = z.object({
  text: z.string(),
  /** Some of the content is not shown. */
  truncated: z.boolean().optional(),
  data: z.array(z.unknown()).optional(),
  urls: z.array(z.string()).optional(),
  /** Binary parts. A tool that shows them has each as content of its own, in this order, unless it is `truncated`. */
  files: z
    .array(z.object({ name: z.string().optional(), media_type: z.string(), bytes: z.int() }))
    .optional(),
});
type ContentView = z.infer<typeof contentViewSchema>;

/** Approximate bytes of the JSON around a text. */
const OVERHEAD_BYTES = 64;

/** The bytes left for a tool's output. */
export class ByteBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = Math.floor(bytes);
  }

  get left(): number {
    return this.#left;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** The text, cut to the bytes left and to `max` bytes. */
  cut(text: string, max = Number.POSITIVE_INFINITY): { text: string; truncated?: true } {
    const shown = preview(text, Math.max(0, Math.floor(Math.min(this.#left, max))));
    this.#left -= Buffer.byteLength(shown);
    return shown.length < text.length ? { text: shown, truncated: true } : { text };
  }

  /** Spends the value's size if there are enough bytes left; returns whether there were. */
  spendIfFits(value: unknown): boolean {
    const size = Buffer.byteLength(JSON.stringify(value) ?? "");
    if (size > this.#left) return false;
    this.#left -= size;
    return true;
  }

  /** Spends the size of content that is shown even when nothing is left. */
  spend(...texts: readonly (string | undefined)[]): void {
    this.#left -= texts.reduce((sum, text = "") => sum + Buffer.byteLength(text), OVERHEAD_BYTES);
  }

  /** Shows as many items as fit, and at least one. */
  map<T, R>(items: readonly T[], show: (item: T) => R): R[] {
    const shown: R[] = [];
    for (const item of items) {
      if (shown.length > 0 && this.isSpent) break;
      shown.push(show(item));
    }
    return shown;
  }
}

/** A binary part, or a link to a file, as MCP content. */
export type FileBlock =
  | ResourceLink
  | { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string }
  | { readonly type: "resource"; readonly resource: { uri: string; mimeType: string; blob: string } };

function toFileBlock(data: string, mimeType: string, name: string): FileBlock {
  const [kind] = mimeType.split("/");
  if (kind === "image" || kind === "audio") return { type: kind, data, mimeType };
  return {
    type: "resource",
    resource: { uri: `errand:///${encodeURIComponent(name)}`, mimeType, blob: data },
  };
}

/** `blocks` gets the binary parts that fit; without it they are only named. */
export function toContentView(
  content: Pick<Message, "parts"> | Pick<Artifact, "parts" | "artifactId" | "name">,
  budget: ByteBudget,
  blocks?: FileBlock[],
): ContentView {
  const { parts } = content;
  const text = budget.cut(textOf(content));
  const files: NonNullable<ContentView["files"]> = [];
  const data: unknown[] = [];
  const urls: string[] = [];
  let omitted = false;
  for (const part of parts) {
    if (part.raw !== undefined) {
      const { filename: name = "name" in content ? content.name : undefined } = part;
      const media_type = part.mediaType ?? "application/octet-stream";
      const bytes = Buffer.from(part.raw, "base64");
      files.push({ ...(name !== undefined && { name }), media_type, bytes: bytes.length });
      budget.spend(name, media_type);
      if (blocks && budget.spendIfFits(part.raw)) {
        blocks.push(toFileBlock(bytes.toString("base64"), media_type, name ?? `file-${blocks.length + 1}`));
      } else omitted = true;
      continue;
    }
    const whole = part.url ?? part.data;
    if (whole !== undefined && !budget.spendIfFits(whole)) {
      omitted = true;
      continue;
    }
    if (part.url !== undefined) urls.push(part.url);
    const link = linkTo(part);
    if (link) blocks?.push(link);
    if (part.data !== undefined) data.push(part.data);
  }
  return {
    ...text,
    ...(omitted && { truncated: true }),
    ...(data.length > 0 && { data }),
    ...(urls.length > 0 && { urls }),
    ...(files.length > 0 && { files }),
  };
}

/** A message with its author. */
export const messageViewSchema = contentViewSchema.extend({
  role: z.enum(["user", "agent"]),
  message_id: z.string(),
  interrupt_id: z.string().optional(),
  request_id: z.string().optional(),
  decision: z.string().optional(),
  /** For an answer: the principal that gave it, and when. */
  by: z.string().optional(),
  at: z.string().optional(),
  /** Only the holder of the lease sees the content. */
  redacted: z.boolean().optional(),
});
export type MessageView = z.infer<typeof messageViewSchema>;

export function toMessageView(message: Message, budget: ByteBudget): MessageView {
  const { interrupt_id, request_id, decision, by, at, redacted } = message.metadata ?? {};
  const isAnswer = typeof interrupt_id === "string";
  const head = {
    role: message.role === "ROLE_USER" ? ("user" as const) : ("agent" as const),
    message_id: message.messageId,
    ...(isAnswer && { interrupt_id }),
    ...(typeof request_id === "string" && { request_id }),
    ...(typeof decision === "string" && { decision }),
    ...(isAnswer && typeof by === "string" && { by }),
    ...(isAnswer && typeof at === "string" && { at }),
    ...(isAnswer && redacted === true && { redacted }),
  };
  budget.spend(JSON.stringify(head));
  return { ...head, ...toContentView(message, budget) };
}

/** The newest messages that fit, oldest first. */
export const newestMessages = (history: readonly Message[], budget: ByteBudget): MessageView[] =>
  budget.map(history.toReversed(), (message) => toMessageView(message, budget)).toReversed();

export const contentLines = ({
  text,
  truncated,
  data = [],
  urls = [],
  files = [],
}: ContentView): string[] => [
  ...(text === "" ? [] : [text]),
  ...data.map((value) => JSON.stringify(value)),
  ...urls,
  ...files.map(({ name, media_type, bytes }) =>
    `[file ${name ?? ""} ${media_type}, ${bytes} bytes]`.replace("  ", " "),
  ),
  ...(truncated === true ? ["[cut]"] : []),
];

/** A message as text: its author, the decision, the content. */
export function messageText({ role, decision, by, at, redacted, ...content }: MessageView): string {
  const author = by === undefined ? role : `${role} (${by}${at === undefined ? "" : `, ${at}`})`;
  const lines = [
    ...(decision === undefined ? [] : [`[${decision}]`]),
    ...(redacted === true ? ["[redacted]"] : []),
    ...contentLines(content),
  ];
  return `${author}: ${lines.join("\n")}`;
}
