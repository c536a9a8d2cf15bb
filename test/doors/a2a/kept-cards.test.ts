import { expect, test } from "vitest";
import { KeptCards } from "../../../src/doors/a2a/cards/kept-cards.ts";
import { KeptPage } from "../../../src/doors/http/kept-page.ts";
import type { StoredAgent } from "../../../src/engine/agents/stored-agent.ts";
import { client, startBroker } from "../../support/broker.ts";

async function agentsOf(count: number): Promise<{ agents: StoredAgent[]; read: () => Promise<StoredAgent> }> {
  const { url, gateway } = await startBroker();
  const api = client(url);
  const names = Array.from({ length: count }, (_, n) => `a${n}`);
  for (const name of names) await api.agent(name);
  const agents = await Promise.all(names.map((name) => gateway.broker.agents.get(name)));
  return {
    agents,
    read: async () => {
      await api.agent("a0", { description: "changed" });
      return gateway.broker.agents.get("a0");
    },
  };
}

test("a card is rendered once for each form, and again when its agent changes", async () => {
  const cards = new KeptCards();
  const { agents, read } = await agentsOf(1);
  let rendered = 0;
  const find = (agent: StoredAgent | undefined, form = "1.0") => {
    if (!agent) throw new TypeError("no agent");
    return cards.find(agent, form, async () => {
      rendered += 1;
      return new KeptPage("{}", {});
    });
  };
  for (let n = 0; n < 3; n += 1) await find(agents[0]);
  expect(rendered).toBe(1);
  await find(agents[0], "0.3");
  expect(rendered).toBe(2);
  const changed = await read();
  for (let n = 0; n < 3; n += 1) await find(changed);
  expect(rendered).toBe(3);
});

test("kept cards are bounded in bytes", async () => {
  const cards = new KeptCards(20_000);
  const { agents } = await agentsOf(5);
  for (const agent of agents) await cards.find(agent, "1.0", async () => new KeptPage("x".repeat(2_000), {}));
  expect(cards.bytes).toBeLessThanOrEqual(20_000);
  expect(cards.bytes).toBeGreaterThan(7_000);
});

test("a card is sent compressed, and a client that has it gets 304", async () => {
  const { url } = await startBroker();
  await client(url).agent("scout");
  const card = (headers: Record<string, string>) =>
    fetch(`${url}/a2a/scout/.well-known/agent-card.json`, { headers });
  const first = await card({ "accept-encoding": "br" });
  expect(first.headers.get("content-encoding")).toBe("br");
  expect(first.headers.get("vary")).toBe("A2A-Version, Accept-Encoding, Origin");
  expect(await first.json()).toMatchObject({ name: "scout" });
  const again = await card({ "if-none-match": first.headers.get("etag") ?? "" });
  expect(again.status).toBe(304);
});
