/**
 * What the conversation takes from the events: reports of progress, and the action, options and time of each question. The
 * history has only a question's text.
 */
import * as z from "zod";
import type { DelegationEvent } from "../../schema/event.ts";

const requestSchema = z.object({
  message: z.object({ messageId: z.string() }),
  options: z.array(z.unknown()).default([]),
  action: z.object({ name: z.string(), arguments: z.unknown() }).optional(),
});
const askedSchema = z.object({ interrupt: z.object({ requests: z.array(requestSchema) }) });

export type Asked = Omit<z.infer<typeof requestSchema>, "message"> & { readonly at: string };

export interface TalkEvents {
  /** How many events were examined. */
  examined: number;
  readonly reports: DelegationEvent[];
  /** By the id of the question's message. */
  readonly asked: Map<string, Asked>;
}

export const noTalkEvents = (): TalkEvents => ({ examined: 0, reports: [], asked: new Map() });

/** Examines the events that were added since the last call. */
export function examine(talk: TalkEvents, events: readonly DelegationEvent[]): void {
  for (const event of events.slice(talk.examined)) {
    if (event.status === "progress") talk.reports.push(event);
    if (event.status !== "interrupted") continue;
    const { data } = askedSchema.safeParse(event);
    for (const { message, ...asked } of data?.interrupt.requests ?? [])
      talk.asked.set(message.messageId, { ...asked, at: event.at });
  }
  talk.examined = events.length;
}

/** The reports before each of the instants, and after the last one. A null instant takes none. */
export function reportsBetween(
  reports: readonly DelegationEvent[],
  instants: readonly (string | null)[],
): readonly (readonly DelegationEvent[])[] {
  let from = 0;
  const groups = instants.map((instant) => {
    const start = from;
    while (instant !== null && (reports[from]?.at ?? "~") <= instant) from += 1;
    return reports.slice(start, from);
  });
  return [...groups, reports.slice(from)];
}
