import { expect, test, vi } from "vitest";
import { client, startBroker } from "../support/broker.ts";

test("a gateway whose clock is ahead of Redis' waits for delayed work as long as Redis says, without asking on and on", async () => {
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const real = Date.now;
  const ahead = vi.spyOn(Date, "now").mockImplementation(() => real() + 60_000);
  try {
    const take = vi.spyOn(gateway.broker.writer, "take");
    await api.delegate("scout", { delay_seconds: 1 });
    expect((await api.lease("scout", { wait_seconds: 20 })).body.leases).toHaveLength(1);
    expect(take.mock.calls.length).toBeLessThan(6);
  } finally {
    ahead.mockRestore();
  }
});
