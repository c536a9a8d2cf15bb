/** Conversation ids of real channels, and hostile ones: accepted by every door, found again, and never part of a key. */
import { expect, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";
import { callModern } from "../../support/mcp.ts";

const ACCEPTED: readonly string[] = [
  "0b9f6c1e-7f54-4d0e-9a51-2f7b1f0a7f10",
  "19:meeting_abc123@thread.v2",
  "a:1qhNLqpUtmuI6U35gzjsJn7uRnCkW8NiZALHfN8AMxdbprS1uta2aT",
  "<CAF=x+y@mail.example.org>",
  "shop/user-1/session-9",
  "15551234567@s.whatsapp.net",
  "!room:example.org",
  "thread|checkpoint",
  "https://example.org/c/1?x=1&y=%20#top",
  "+15551234567",
  "C024BE91L:1700000000.123456",
  "Zm9vYmFyLzEyMys0NQ==",
  "my conversation",
  "Gespräch-1",
  "x".repeat(512),
  "😀".repeat(512),
  "{a}",
  "{errand:1}:list:all",
  "*",
  "[a-z]?",
  "../x",
  "/etc/passwd",
  "$(id)`id`;'\"\\",
  "%2e%2e%00",
  "--help",
  "שלום \u202Eabc",
  "\u2028\u2029",
  " ",
  "#da39a3ee5e6b4b0d3255bfef95601890afd80709",
  "__proto__",
];
const REFUSED: readonly string[] = [
  "",
  "a\nb",
  "a\u0000b",
  "\u007f",
  "\u0085",
  "\ud83d",
  "x".repeat(513),
  "😀".repeat(513),
];

async function setup() {
  const broker = await startBroker();
  const agent = await as(broker.url, "agent:scout");
  await agent.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  return { ...broker, agent, alice };
}
type World = Awaited<ReturnType<typeof setup>>;

/** For each door, the status or code of a delegation in this context. */
const DOORS: Record<string, (world: World, id: string) => Promise<unknown>> = {
  REST: async ({ alice }, id) => (await alice.delegate("scout", { context_id: id })).status,
  A2A: async ({ url, alice }, id) => {
    const message = {
      messageId: crypto.randomUUID(),
      role: "ROLE_USER",
      contextId: id,
      parts: [{ text: "x" }],
    };
    const response = await fetch(`${url}/a2a/scout/rest/message:send`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${alice.token}`,
        "content-type": "application/json",
        "a2a-version": "1.0",
      },
      body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
    });
    return response.status;
  },
  "AG-UI": async ({ url, alice }, id) => {
    const response = await fetch(`${url}/ag-ui/scout`, {
      method: "POST",
      headers: { authorization: `Bearer ${alice.token}`, "content-type": "application/json" },
      body: JSON.stringify({
        threadId: id,
        runId: crypto.randomUUID(),
        messages: [{ id: crypto.randomUUID(), role: "user", content: "hi" }],
      }),
    });
    await response.body?.cancel();
    return response.status;
  },
  MCP: async ({ url, alice }, id) => {
    const { status, body } = await callModern(url, alice.token, "delegate_task_async", {
      agent: "scout",
      task: "x",
      context_id: id,
    });
    return status === 200 && body.result.isError !== true ? 200 : 400;
  },
};

test("every door accepts them, and lists find each one alone", async () => {
  const world = await setup();
  const { alice, agent, redis } = world;
  for (const id of ACCEPTED) {
    for (const [door, send] of Object.entries(DOORS)) {
      expect([200, 201, 202], `${door} ${id}`).toContain(await send(world, id));
    }
    const found = (await alice.call("GET", `/v1/delegations?context_id=${encodeURIComponent(id)}`)).body
      .delegations;
    expect(new Set(found.map((one: { context_id: string }) => one.context_id)), id).toEqual(new Set([id]));
  }
  const [first] = (await agent.lease("scout")).body.leases;
  expect(first.delegation.context_id).toBe(ACCEPTED[0]);
  const keys = await keysIn(redis, "*:list:context:*");
  const names = new Set(keys.map((key) => key.slice(key.indexOf(":list:context:") + 14)));
  expect(names.size).toBe(ACCEPTED.length);
  for (const name of names) expect(name).toMatch(/^(?:[A-Za-z0-9._:-]{1,128}|#[0-9a-f]{40})$/);
});

test("control characters, half characters, nothing and too much are refused with the rule, and nothing is stored", async () => {
  const world = await setup();
  for (const id of REFUSED) {
    for (const [door, send] of Object.entries(DOORS)) {
      // An empty id is an absent one in A2A and MCP.
      if ((door === "A2A" || door === "MCP") && id === "") continue;
      expect(await send(world, id), `${door} ${JSON.stringify(id)}`).toBe(400);
    }
  }
  const refused = await world.alice.delegate("scout", { context_id: "a\tb" });
  expect(refused.body.detail).toContain("1 to 512 characters");
  expect((await world.alice.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});
