/**
 * The proposed action and the options of each question that is no longer open, and its time. Only the events have them:
 * the history has the texts.
 */
import * as z from "zod";
import type { Delegation } from "../../schema/delegation.ts";
import type { Connection } from "../data/connection.ts";
import { useLoaded } from "../ui/use-loaded.ts";

const PAGE = 1000;

const requestSchema = z.object({
  message: z.object({ messageId: z.string() }),
  options: z.array(z.unknown()).default([]),
  action: z.object({ name: z.string(), arguments: z.unknown() }).optional(),
});
const askedSchema = z.object({
  at: z.string(),
  interrupt: z.object({ requests: z.array(requestSchema) }),
});

export type Asked = Omit<z.infer<typeof requestSchema>, "message"> & { readonly at: string };

const NONE: ReadonlyMap<string, Asked> = new Map();

/** By the id of the question's message. Empty until it is read. */
export function useAsked({ id, history }: Delegation): ReadonlyMap<string, Asked> {
  const wanted = history.filter(({ role }) => role === "ROLE_AGENT").map(({ messageId }) => messageId);
  const { value } = useLoaded(
    id,
    (connection, signal) => read(connection, id, wanted, signal),
    wanted.length,
  );
  return value ?? NONE;
}

async function read(
  { pages }: Connection,
  id: string,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Asked>> {
  const found = new Map<string, Asked>();
  let after = "0";
  while (wanted.some((messageId) => !found.has(messageId))) {
    const events = await pages.events(id, PAGE, signal, after);
    for (const event of events) {
      const { data } = askedSchema.safeParse(event);
      for (const { message, ...asked } of data?.interrupt.requests ?? [])
        found.set(message.messageId, { ...asked, at: data?.at ?? "" });
    }
    const last = events.at(-1);
    if (!last || events.length < PAGE) break;
    after = last.id;
  }
  return found;
}
