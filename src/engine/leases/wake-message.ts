/**
 * The message by which a gateway wakes polls at the others, on the channel `wake` of a shard: `<gateway> <name>`, then
 * ` drain` if there may be several tickets. The name is of an agent, of the outbound queue, or {@link PUSH_AGENTS_CHANGED}.
 */

/** Says that the list of push agents has changed. No agent can have this name. */
export const PUSH_AGENTS_CHANGED = "~push-agents";

export interface WakeMessage {
  /** The sender, which ignores its own messages. */
  readonly gateway: string;
  readonly agent: string;
  readonly drain?: boolean;
}

export const formatWake = ({ gateway, agent, drain = false }: WakeMessage): string =>
  `${gateway} ${agent}${drain ? " drain" : ""}`;

export function parseWake(text: string): Required<WakeMessage> {
  const [gateway = "", agent = "", drain] = text.split(" ");
  return { gateway, agent, drain: drain !== undefined };
}
