/** The lease that a gateway holds for a push agent, when the gateway stops while Redis is away. */
import { expect, test, vi } from "vitest";
import type { Broker } from "../../../src/engine/broker.ts";
import { PushAgentLease } from "../../../src/engine/push-agents/lease.ts";
import type { Command } from "../../../src/lifecycle/command.ts";
import { ErrandError } from "../../../src/schema/errors.ts";
import { leaseSchema } from "../../../src/schema/lease.ts";
import { client, startBroker } from "../../support/broker.ts";

test("a gateway that stops while Redis is away fails no work", async () => {
  const { gateway, url } = await startBroker();
  const api = client(url);
  await api.agent("remote");
  const { id } = (await api.delegate("remote")).body;
  const lease = leaseSchema.parse((await api.lease("remote")).body.leases[0]);

  // Redis answers again right after the stopping gateway has repeated its last call for long enough.
  let away = true;
  const now = vi.spyOn(performance, "now");
  const { writer } = gateway.broker;
  const move = async (command: Command) => {
    if (!away) return writer.move(command);
    away = false;
    now.mockReturnValue(performance.now() + 2_000);
    throw new ErrandError("redis_unavailable", "Redis does not answer.");
  };
  const broker: Broker = Object.create(gateway.broker, { writer: { value: { move } } });
  const held = new PushAgentLease(broker, "remote", lease, AbortSignal.abort());
  await held.end({ kind: "stopped" }).catch((error: unknown) => expect(error).toBeInstanceOf(ErrandError));
  held.close();
  now.mockRestore();
  expect((await api.get(id)).body).toMatchObject({ state: "working", attempt: 1, error: null });
});
