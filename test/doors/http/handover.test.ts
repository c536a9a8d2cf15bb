import { Agent, request as sendRequest } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test("a gateway that hands over ends what waits, and serves what still arrives on its connections", async () => {
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { body: sent } = await api.delegate("scout");
  await api.agent("idle");
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const first = get(agent, `${url}/healthz`);
  const second = get(agent, `${url}/healthz`);
  const third = get(agent, `${url}/healthz`);
  await Promise.all([first, second, third]);
  const parked = api.lease("idle", { wait_seconds: 60 });
  await until(() => gateway.broker.handoff.polls.countAll() === 1);

  const closed = gateway.close({ handover: true });
  expect((await parked).body).toEqual({ leases: [] });
  // Not cut short, though it is read after the end of the waits.
  const page = await get(agent, `${url}/v1/delegations/${sent.id}/events?after=0`);
  expect(page.status).toBe(200);
  expect(page.connection).toBe("close");
  expect(JSON.parse(page.text).events).toHaveLength(1);
  const ready = await get(agent, `${url}/readyz`);
  expect(ready.status).toBe(200);
  // A wait ends soon, with what there is.
  const waited = await get(agent, `${url}/v1/events?after=0&wait_seconds=60`);
  expect(JSON.parse(waited.text).events).toHaveLength(1);
  await closed;
});

interface Got {
  readonly status: number;
  readonly connection: string | undefined;
  readonly text: string;
}

function get(agent: Agent, url: string): Promise<Got> {
  const headers = { authorization: `Bearer ${OPERATOR}`, accept: "application/json" };
  return new Promise((resolve, reject) => {
    const sent = sendRequest(url, { agent, headers }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => {
        resolve({ status: answer.statusCode ?? 0, connection: answer.headers.connection, text });
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}
