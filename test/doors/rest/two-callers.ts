/** A broker with two agents and two callers, for the tests of lists and results. */
import { as, client, startBroker } from "../../support/broker.ts";

/** `finish` leases the first delegation of an agent, replies, and returns its id. */
export async function setup(options = {}) {
  const broker = await startBroker(options);
  const admin = client(broker.url);
  for (const name of ["scout", "other"]) await admin.agent(name);
  const alice = await as(broker.url, "caller:alice");
  const bob = await as(broker.url, "caller:bob");
  const finish = async (agent: string, reply: Record<string, unknown> = {}) => {
    const { leases } = (await admin.lease(agent)).body;
    await admin.reply(leases[0].lease_id, reply);
    return String(leases[0].delegation.id);
  };
  return { ...broker, admin, alice, bob, finish };
}
