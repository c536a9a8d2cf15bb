/** A broker with an agent, an approver and a caller who subscribe; time passes by the test's clock. */
import { expect } from "vitest";
import { as, client, startBroker } from "./broker.ts";

export async function startSubscribed(options: Parameters<typeof startBroker>[0] = {}) {
  const started = await startBroker({
    callbackAllow: ["127.0.0.1"],
    callbackRetryMs: () => 60_000,
    ...options,
  });
  const api = client(started.url);
  await api.agent("scout");
  const ann = await as(started.url, "approver:ann");
  const alice = await as(started.url, "caller:alice");
  const subscribe = async (who: typeof ann, body: Record<string, unknown>) => {
    const made = await who.call("POST", "/v1/subscriptions", body);
    expect(made.status).toBe(201);
    return made.body;
  };
  const tick = () => started.gateway.broker.subscriptions.tick();
  const ask = async (text = "May I?") => {
    const made = await alice.delegate("scout");
    const [lease] = (await api.lease("scout")).body.leases;
    const { interrupt_id } = (await api.interrupt(lease.lease_id, { text })).body;
    return { id: String(made.body.id), interrupt_id: String(interrupt_id) };
  };
  return { ...started, api, ann, alice, subscribe, tick, ask };
}

export const bodies = (received: readonly { readonly body: string }[]) =>
  received.map(({ body }) => JSON.parse(body));
