/**
 * The messages by which a gateway wakes the others, on the channel `wake` of a shard:
 *
 *     {"from":"g7Qx…","wake":{"kind":"ticket","agent":"scout","drain":false}}
 *
 * A message is a hint. One that is lost, or of a kind that this build does not know, costs time, never work.
 */
import * as z from "zod";
import { parseJson } from "../../util/parse-json.ts";

const agent = z.string();
const wakeSchema = z.discriminatedUnion("kind", [
  /** The agent's queue has a ticket; with `drain`, perhaps several. */
  z.object({ kind: z.literal("ticket"), agent, drain: z.boolean() }),
  /** The agent's queue has a ticket that is kept for this worker. */
  z.object({ kind: z.literal("kept_ticket"), agent, worker: z.string() }),
  /** The list of push agents has changed, or the server of one. */
  z.object({ kind: z.literal("push_agents") }),
]);
export type Wake = Readonly<z.infer<typeof wakeSchema>>;
/** A wake of one agent's polls. */
export type AgentWake = Extract<Wake, { readonly agent: string }>;

/** `from`: the gateway that sent it, which ignores its own messages. */
const messageSchema = z.object({ from: z.string(), wake: wakeSchema });
export type WakeMessage = Readonly<z.infer<typeof messageSchema>>;

export const formatWake = (message: WakeMessage): string => JSON.stringify(message);

export const parseWake = (text: string): WakeMessage | undefined =>
  messageSchema.safeParse(parseJson(text)).data;
