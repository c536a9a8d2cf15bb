/**
 * The proposed action and the options of each question, and its time. Only the events have them: the history has the
 * texts.
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

/** By the id of the question's message. */
export function askedOf(events: readonly DelegationEvent[]): ReadonlyMap<string, Asked> {
  const found = new Map<string, Asked>();
  for (const event of events) {
    if (event.status !== "interrupted") continue;
    const { data } = askedSchema.safeParse(event);
    for (const { message, ...asked } of data?.interrupt.requests ?? [])
      found.set(message.messageId, { ...asked, at: event.at });
  }
  return found;
}
