/**
 * Messages and artifacts within a byte budget. Text is cut; data and URLs are whole or omitted; raw bytes are always
 * omitted. Whatever is missing is marked as truncated, or counted.
 */
import * as z from "zod";
import { preview } from "../../../engine/delegations/preview.ts";
import { type Artifact, type Message, textOf } from "../../../schema/a2a.ts";

export const contentViewSchema = z.object({
  text: z.string(),
  /** Some of the content is not shown. */
  truncated: z.boolean().optional(),
  data: z.array(z.unknown()).optional(),
  urls: z.array(z.string()).optional(),
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

export function toContentView({ parts }: Pick<Message | Artifact, "parts">, budget: ByteBudget): ContentView {
  const text = budget.cut(textOf({ parts }));
  const data: unknown[] = [];
  const urls: string[] = [];
  let omitted = false;
  for (const part of parts) {
    const whole = part.url ?? part.data;
    if (part.raw !== undefined || (whole !== undefined && !budget.spendIfFits(whole))) {
      omitted = true;
      continue;
    }
    if (part.url !== undefined) urls.push(part.url);
    if (part.data !== undefined) data.push(part.data);
  }
  return {
    ...text,
    ...(omitted && { truncated: true }),
    ...(data.length > 0 && { data }),
    ...(urls.length > 0 && { urls }),
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

export const contentLines = ({ text, truncated, data = [], urls = [] }: ContentView): string[] => [
  ...(text === "" ? [] : [text]),
  ...data.map((value) => JSON.stringify(value)),
  ...urls,
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
