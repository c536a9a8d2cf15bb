/**
 * How much work waits for an agent, and how many workers would help now, for what starts workers. Limit: a few counts, whatever
 * waits; they are read one after another, so they may differ by what happens meanwhile.
 */
import type { AgentLoad } from "../../schema/agent-load.ts";
import { ErrandError } from "../../schema/errors.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, seesAll } from "../access/access.ts";
import type { Broker } from "../broker.ts";

/** Throws `forbidden` unless the agent itself, an approver, a viewer or the operator asks. */
export async function loadOf(
  broker: Pick<Broker, "agents" | "tickets">,
  principal: Principal,
  name: string,
): Promise<AgentLoad> {
  if (!seesAll(principal) && !(principal.kind === "agent" && principal.name === name)) {
    throw new ErrandError(
      "forbidden",
      `Only agent:${name}, approvers, viewers and the operator may see its load.`,
    );
  }
  const { spec, paused } = await broker.agents.get(name);
  const [{ waiting: queued, working: leased }, oldest_at, tickets] = await Promise.all([
    broker.agents.counts(name),
    broker.agents.oldestAt(name),
    // Of a conversation only the first has a ticket: more workers would not help the others.
    spec.serial_by === null ? Number.POSITIVE_INFINITY : broker.tickets.countReady(name),
  ]);
  const left = Math.max(0, (spec.limits.max_working ?? Number.POSITIVE_INFINITY) - leased);
  const wanted = paused || spec.delivery.mode === "push" ? 0 : Math.min(queued, tickets, left);
  return {
    queued,
    leased,
    wanted,
    max_working: spec.limits.max_working,
    paused,
    oldest_waiting_at: queued > 0 && oldest_at !== null ? toInstant(oldest_at) : null,
  };
}
