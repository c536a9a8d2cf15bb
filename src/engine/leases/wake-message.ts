/**
 * The message by which a gateway wakes polls at the others, on the channel `wake` of a shard: `<gateway> <name>`, then
 * ` drain` if there may be several tickets, or
 * ` for=<worker>` if it is for this worker alone. The name is of an agent, of the outbound queue, or {@link PUSH_AGENTS_CHANGED}.
 */

/** Says that the list of push agents has changed. No agent can have this name. */
export const PUSH_AGENTS_CHANGED = "~push-agents";

export interface WakeMessage {
  /** The sender, which ignores its own messages. */
  readonly gateway: string;
  readonly agent: string;
  readonly drain?: boolean;
  /** The ticket is kept for this worker. */
  readonly worker?: string | undefined;
}

const FOR = "for=";

export const formatWake = ({ gateway, agent, drain = false, worker }: WakeMessage): string =>
  [
    gateway,
    agent,
    ...(drain ? ["drain"] : []),
    ...(worker === undefined ? [] : [FOR + encodeURIComponent(worker)]),
  ].join(" ");

export function parseWake(text: string): WakeMessage {
  const [gateway = "", agent = "", how] = text.split(" ");
  if (how?.startsWith(FOR)) return { gateway, agent, worker: decodeURIComponent(how.slice(FOR.length)) };
  return { gateway, agent, drain: how !== undefined };
}
