/**
 * Making and changing an agent. Limit: where the broker calls out to is the operator's to say, as is that it stops.
 */
import type { AgentSpec, Delivery } from "../schema/agent.ts";
import { ErrandError } from "../schema/errors.ts";
import { type Principal, requireAgent } from "./access.ts";
import type { Broker } from "./context.ts";
import { wake } from "./dispatch.ts";

const POLL: Delivery = { mode: "poll" };
const urlOf = (delivery: Delivery): string | undefined =>
  delivery.mode === "push" ? delivery.url : undefined;

export async function putAgent(
  broker: Broker,
  principal: Principal,
  name: string,
  spec: AgentSpec,
): Promise<{ created: boolean }> {
  requireAgent(principal, name, "change it");
  const before = (await broker.agents.find(name))?.spec.delivery ?? POLL;
  const url = urlOf(spec.delivery);
  const moves = url !== urlOf(before);
  if (moves && principal.kind !== "operator") {
    throw new ErrandError(
      "forbidden",
      `Only the operator may change how work is delivered to agent '${name}'.`,
      {
        recovery: "Send `delivery` as it stands, or ask the operator.",
      },
    );
  }
  if (url !== undefined) broker.egress.requireCallable(url, "delivery.url");
  const put = await broker.agents.put(name, spec);
  // What an earlier call wrote and did not live to tell is told now.
  if (moves || broker.houseRelay.has(name) !== (url !== undefined)) await broker.houseRelay.changed(name);
  // More may be handed out now.
  if (!put.created) wake(broker, name);
  return put;
}
