import { expect, test, vi } from "vitest";
import { client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test("a gateway whose clock is ahead of Redis' waits for delayed work as long as Redis says, without fetching again and again", async () => {
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

test("a poll of a paused agent does not fetch again and again, and gets the work after the resume", async () => {
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  await api.call("POST", "/v1/agents/scout/pause");
  await api.delegate("scout");
  const take = vi.spyOn(gateway.broker.writer, "take");
  const poll = api.lease("scout", { wait_seconds: 20 });
  await until(() => take.mock.calls.length > 0);
  // Long enough for many fetches.
  for (let i = 0; i < 20; i += 1) await api.call("GET", "/v1/agents/scout");
  expect(take.mock.calls.length).toBeLessThan(4);
  await api.call("POST", "/v1/agents/scout/resume");
  expect((await poll).body.leases).toHaveLength(1);
});
