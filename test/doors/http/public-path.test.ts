import { expect, test } from "vitest";
import { client, request, startBroker } from "../../support/broker.ts";

test.each([
  [undefined, ""],
  ["https://errand.example", ""],
  ["https://errand.example/tools/errand", "/tools/errand"],
  ["https://errand.example/tools/errand/", "/tools/errand"],
])("with the public URL %s, all links are below its path", async (publicUrl, base) => {
  const { url } = await startBroker({ publicUrl });
  const api = client(url);
  await api.agent("scout");
  const created = await api.delegate("scout");
  const { id } = created.body;
  expect(created.headers.get("location")).toBe(`${base}/v1/delegations/${id}`);
  const { leases } = (await api.lease("scout")).body;
  await api.reply(leases[0].lease_id, { state: "failed" });
  const again = await api.redrive(id);
  expect(again.headers.get("location")).toBe(`${base}/v1/delegations/${again.body.id}`);
  for (const [path, body] of [
    ["/v1/schedules", { every_seconds: 3_600, delegation: { target: "scout", task: "look" } }],
    ["/v1/rules", { agent: "scout", action: "look", decision: "approve" }],
    ["/v1/subscriptions", { events: ["ended"], deliver: [{ kind: "ntfy", url: "https://ntfy.sh/topic" }] }],
  ] as const) {
    const made = await api.call("POST", path, body);
    expect(made.headers.get("location")).toBe(`${base}${path}/${made.body.id}`);
  }
  expect((await request(url, "GET", "/openapi.json")).body.servers).toEqual([{ url: `${base}/` }]);
  const lost = await request(url, "GET", "/a2a/scout/nowhere");
  expect(lost.body.recovery).toContain(` ${base}/a2a/scout/.well-known/agent-card.json`);
  const code = (await api.call("POST", "/v1/sessions/codes")).body;
  const root = publicUrl === undefined ? url : `https://errand.example${base}`;
  expect(code.url).toBe(`${root}/#code=${code.code}`);
  // No other root-relative or absolute link of the broker leaves the path.
  const { a2a_card_url } = (await api.call("GET", "/v1/agents/scout")).body;
  expect(a2a_card_url).toBe(`${root}/a2a/scout/.well-known/agent-card.json`);
});
