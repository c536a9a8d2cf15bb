/**
 * What was said and made, as far as there is room for it in an answer. Limit: text is cut, data and addresses come whole
 * or not at all, bytes never; what was left out is marked or counted.
 */
import * as z from "zod";
import { preview } from "../../../engine/delegations/delegate.ts";
import { type Artifact, type Message, textOf } from "../../../schema/a2a.ts";

export const contentSchema = z.object({
  text: z.string(),
  /** There is more than is shown. */
  truncated: z.boolean().optional(),
  data: z.array(z.unknown()).optional(),
  urls: z.array(z.string()).optional(),
});
type Content = z.infer<typeof contentSchema>;

/** The members around a text, roughly, in bytes. */
const FRAME = 64;

/** How many bytes are left for what is still to be shown. */
export class Room {
  #left: number;

  constructor(bytes: number) {
    this.#left = Math.floor(bytes);
  }

  get isFull(): boolean {
    return this.#left <= 0;
  }

  take(text: string, most = Number.POSITIVE_INFINITY): { text: string; truncated?: true } {
    const shown = preview(text, Math.max(0, Math.floor(Math.min(this.#left, most))));
    this.#left -= Buffer.byteLength(shown);
    return shown.length < text.length ? { text: shown, truncated: true } : { text };
  }

  /** Whether it was there for the whole. */
  fits(value: unknown): boolean {
    const size = Buffer.byteLength(JSON.stringify(value) ?? "");
    if (size > this.#left) return false;
    this.#left -= size;
    return true;
  }

  /** What has to be shown, whatever is left. */
  spend(...texts: readonly (string | undefined)[]): void {
    this.#left -= texts.reduce((sum, text = "") => sum + Buffer.byteLength(text), FRAME);
  }

  /** As many as there is room for, one at least. */
  each<T, R>(items: readonly T[], show: (item: T) => R): R[] {
    const shown: R[] = [];
    for (const item of items) {
      if (shown.length > 0 && this.isFull) break;
      shown.push(show(item));
    }
    return shown;
  }
}

export function contentOf({ parts }: Pick<Message | Artifact, "parts">, room: Room): Content {
  const cut = room.take(textOf({ parts }));
  const data: unknown[] = [];
  const urls: string[] = [];
  let omitted = false;
  for (const part of parts) {
    const whole = part.url ?? part.data;
    if (part.raw !== undefined || (whole !== undefined && !room.fits(whole))) {
      omitted = true;
      continue;
    }
    if (part.url !== undefined) urls.push(part.url);
    if (part.data !== undefined) data.push(part.data);
  }
  return {
    ...cut,
    ...(omitted && { truncated: true }),
    ...(data.length > 0 && { data }),
    ...(urls.length > 0 && { urls }),
  };
}

/** A message: who says it, and what. */
export const saidSchema = contentSchema.extend({
  role: z.enum(["user", "agent"]),
  message_id: z.string(),
  interrupt_id: z.string().optional(),
  request_id: z.string().optional(),
  decision: z.string().optional(),
  /** Who answered, and when. */
  by: z.string().optional(),
  at: z.string().optional(),
  /** Its content is shown only to the holder of the lease. */
  redacted: z.boolean().optional(),
});
export type Said = z.infer<typeof saidSchema>;

export function saidOf(message: Message, room: Room): Said {
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
  room.spend(JSON.stringify(head));
  return { ...head, ...contentOf(message, room) };
}

/** Oldest first; where not all of it fits, the newest of it. */
export const newestSaid = (history: readonly Message[], room: Room): Said[] =>
  room.each(history.toReversed(), (message) => saidOf(message, room)).toReversed();

export const wordsOf = ({ text, truncated, data = [], urls = [] }: Content): string[] => [
  ...(text === "" ? [] : [text]),
  ...data.map((one) => JSON.stringify(one)),
  ...urls,
  ...(truncated === true ? ["[cut]"] : []),
];

/** A message as text: its author, the decision, the content. */
export function saidLine({ role, decision, by, at, redacted, ...content }: Said): string {
  const who = by === undefined ? role : `${role} (${by}${at === undefined ? "" : `, ${at}`})`;
  const words = [
    ...(decision === undefined ? [] : [`[${decision}]`]),
    ...(redacted === true ? ["[redacted]"] : []),
    ...wordsOf(content),
  ];
  return `${who}: ${words.join("\n")}`;
}
