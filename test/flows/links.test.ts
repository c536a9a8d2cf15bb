/** Answer links: who may use one, once, for exactly what was asked; and what scanners and guessers get. */
import { expect, test } from "vitest";
import { LinkStore } from "../../src/engine/links/store.ts";
import { keys } from "../../src/redis/keys.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, request } from "../support/broker.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const ACTION = { text: "Drop it?", action: { name: "drop", arguments: { table: "users" } } };

async function setup() {
  const started = await startSubscribed({ publicUrl: "https://errand.example/base" });
  const { alice, api, ann, subscribe, tick, url } = started;
  const receiver = await startReceiver();
  const { id: subscription } = await subscribe(ann, {
    events: ["question"],
    deliver: [{ kind: "webhook", url: receiver.url }],
  });
  await tick();
  /** Asks, and returns the secret of the link that ann gets. */
  const ask = async (question: Record<string, unknown> = ACTION) => {
    const made = await alice.delegate("scout");
    const [lease] = (await api.lease("scout")).body.leases;
    const { interrupt_id } = (await api.interrupt(lease.lease_id, question)).body;
    const before = receiver.received.length;
    await tick();
    await until(() => receiver.received.length > before);
    const link = String(bodies(receiver.received).at(-1)?.link);
    return {
      id: String(made.body.id),
      interrupt_id: String(interrupt_id),
      link,
      token: link.split("#")[1] ?? "",
    };
  };
  const post = (path: string, body: unknown) =>
    request(url, "POST", `/v1/links/${path}`, { body, token: null });
  const audited = async (action: string) =>
    (await api.call("GET", `/v1/audit?action=${action}`)).body.entries;
  return { ...started, subscription, receiver, ask, post, audited };
}

test("a link shows the whole question, and answers it once in the name of its person", async () => {
  const { api, ask, post, audited, subscription, log, redis } = await setup();
  const { id, interrupt_id, link, token } = await ask();
  expect(link).toBe(`https://errand.example/base/answer#${token}`);
  const shown = await post("question", { token });
  expect(shown).toMatchObject({
    status: 200,
    body: {
      ...{ person: "approver:ann", agent: "scout", delegation_id: id, answer: "decision" },
      interrupt: { id: interrupt_id, requests: [{ action: ACTION.action }] },
    },
  });
  expect((await post("answer", { token, decision: "approve", text: "fine" })).body).toEqual({
    delegation_id: id,
  });
  const { events } = (await api.events(id)).body;
  expect(events.find(({ status }: { status?: string }) => status === "answered")).toMatchObject({
    ...{ by: "approver:ann", via: "link", decision: "approve" },
  });
  expect(await audited("link.answer")).toMatchObject([
    {
      by: "approver:ann",
      subject: id,
      details: { interrupt_id, subscription, channel: "webhook", decision: "approve" },
    },
  ]);
  const again = await post("answer", { token, decision: "deny" });
  const unknown = await post("answer", { token: `lnk_${"a".repeat(43)}`, decision: "deny" });
  for (const answer of [again, unknown]) expect(answer.status).toBe(404);
  const { request_id: _a, ...one } = again.body;
  const { request_id: _b, ...other } = unknown.body;
  expect(one).toEqual(other);
  expect(await audited("link.refuse")).toMatchObject([{ details: { reason: "it was used" } }]);
  // The secret is nowhere but with its person.
  for (const key of await redis.keys("*")) expect(key).not.toContain(token);
  expect(log.join("\n")).not.toContain(token);
});

test.each<
  [
    string,
    (given: Awaited<ReturnType<typeof setup>> & { id: string; interrupt_id: string }) => Promise<unknown>,
    string,
  ]
>([
  [
    "answered by another",
    ({ alice, id, interrupt_id }) => alice.answer(id, interrupt_id, { decision: "deny" }),
    "its question is closed",
  ],
  ["canceled", ({ alice, id }) => alice.cancel(id), "its question is closed"],
  [
    "without its subscription",
    ({ ann, subscription }) => ann.call("DELETE", `/v1/subscriptions/${subscription}`),
    "its subscription was deleted",
  ],
  [
    "of a person whose token is revoked",
    ({ api, ann }) => api.call("DELETE", `/v1/tokens/${ann.tokenId}`),
    "its person has no valid token",
  ],
  [
    "of an agent that requires a sign-in by now",
    ({ api }) => api.call("PATCH", "/v1/agents/scout", { notify: { links: "sign_in" } }),
    "the agent requires a sign-in",
  ],
])("a link %s changes nothing, and the audit log says why", async (_what, change, reason) => {
  const given = await setup();
  const { ask, post, audited, api } = given;
  const asked = await ask();
  await change({ ...given, ...asked });
  const before = (await api.get(asked.id)).body;
  expect((await post("question", { token: asked.token })).status).toBe(404);
  expect((await post("answer", { token: asked.token, decision: "approve" })).status).toBe(404);
  expect((await api.get(asked.id)).body).toEqual(before);
  expect(
    (await audited("link.refuse")).map(({ details }: { details: { reason: string } }) => details.reason),
  ).toEqual([reason]);
});

test("a question that is asked again has another link, and the old one is dead", async () => {
  const { api, alice, ask, post, receiver, tick } = await setup();
  const first = await ask();
  await alice.answer(first.id, first.interrupt_id, { decision: "deny" });
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, {
    ...ACTION,
    action: { name: "drop", arguments: { table: "orders" } },
  });
  await tick();
  await until(() => receiver.received.length === 2);
  expect((await post("answer", { token: first.token, decision: "approve" })).status).toBe(404);
  const token = String(bodies(receiver.received)[1]?.link).split("#")[1];
  expect(token).not.toBe(first.token);
  expect((await post("answer", { token, decision: "approve" })).status).toBe(200);
});

test("what a link must not answer leads to the console: credentials, data, changed arguments", async () => {
  const { ask, post } = await setup();
  for (const question of [
    { kind: "auth", text: "Your key?" },
    { text: "How many?", schema: { type: "object", properties: { n: { type: "number" } } } },
    { text: "Which?", options: [1, 2] },
  ]) {
    const { link, id } = await ask(question);
    expect(link).toBe(`https://errand.example/base/#/d/${id}`);
  }
  const { token } = await ask({ ...ACTION, edit: true });
  const edited = await post("answer", { token, decision: "approve", data: { table: "orders" } });
  expect(edited).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  const { token: choice, id } = await ask({ text: "Which?", options: ["a", "b"] });
  expect((await post("answer", { token: choice, decision: "approve" })).status).toBe(403);
  expect((await post("answer", { token: choice, text: "c" })).status).toBe(400);
  expect((await post("answer", { token: choice, text: "b" })).body).toEqual({ delegation_id: id });
});

test("without a public URL, and for an agent that wants a sign-in, no link answers", async () => {
  const { api, ask } = await setup();
  await api.call("PATCH", "/v1/agents/scout", { notify: { links: "sign_in" } });
  const { link, id } = await ask();
  expect(link).toBe(`https://errand.example/base/#/d/${id}`);
});

test("buttons of ntfy do one thing each, and only what the agent allows", async () => {
  const { api, ann, alice, subscribe, tick, post } = await setup();
  const { url, port, received } = await startReceiver();
  expect(url).toContain(String(port));
  await subscribe(ann, {
    events: ["question"],
    deliver: [{ kind: "ntfy", url: `http://127.0.0.1:${port}/topic` }],
  });
  const actionsFor = async (one_tap: string) => {
    await api.call("PATCH", "/v1/agents/scout", { notify: { one_tap } });
    await alice.delegate("scout");
    const [lease] = (await api.lease("scout")).body.leases;
    await api.interrupt(lease.lease_id, ACTION);
    const before = received.length;
    await tick();
    await until(() => received.length > before);
    return (bodies(received).at(-1)?.actions ?? []) as { label: string; url: string; body: string }[];
  };
  expect(await actionsFor("none")).toEqual([]);
  const [deny, ...others] = await actionsFor("deny");
  expect(others).toEqual([]);
  expect(deny).toMatchObject({ label: "Deny", url: "https://errand.example/base/v1/links/answer" });
  const pressed = JSON.parse(deny?.body ?? "{}");
  expect((await post("answer", { ...pressed, decision: "approve" })).status).toBe(403);
  expect((await post("answer", pressed)).status).toBe(200);
  const both = await actionsFor("approve");
  expect(both.map(({ label }) => label)).toEqual(["Approve", "Deny"]);
  expect((await post("answer", JSON.parse(both[0]?.body ?? "{}"))).status).toBe(200);
  // All links of a question die together.
  expect((await post("answer", JSON.parse(both[1]?.body ?? "{}"))).status).toBe(404);
});

test("a scanner that follows links, and guesses, change nothing", async () => {
  const { url, api, ask, post, redis } = await setup();
  const { id, token } = await ask();
  const before = (await api.get(id)).body;
  for (const method of ["GET", "HEAD"] as const) {
    const page = await fetch(`${url}/answer`, { method });
    expect({
      status: page.status,
      robots: page.headers.get("x-robots-tag"),
      referrer: page.headers.get("referrer-policy"),
    }).toEqual({
      ...{ status: 200, robots: "noindex", referrer: "no-referrer" },
    });
  }
  for (const path of ["question", "answer"]) {
    expect((await request(url, "GET", `/v1/links/${path}`, { token: null })).status).toBe(405);
    expect((await post(path, {})).status).toBe(400);
  }
  const guesses = Array.from({ length: 200 }, (_, n) => `${token.slice(0, -8)}${String(n).padStart(8, "A")}`);
  for (const guess of guesses)
    expect((await post("answer", { token: guess, decision: "approve" })).status).toBe(404);
  expect((await api.get(id)).body).toEqual(before);
  expect((await redis.keys(`${keys.link("")}*`)).length).toBe(1);
  const metrics = await (
    await fetch(`${url}/metrics`, { headers: { authorization: "Bearer operator-token-for-tests" } })
  ).text();
  expect(metrics).toContain('errand_links_total{outcome="unknown"} 200');
});

test("of the same answer by two people at the same time, only the one that answered is told so", async () => {
  const { api, url, subscribe, ask, post, audited, tick } = await setup();
  const bob = await as(url, "approver:bob");
  const other = await startReceiver();
  await subscribe(bob, { events: ["question"], deliver: [{ kind: "webhook", url: other.url }] });
  const ROUNDS = 8;
  for (let n = 1; n <= ROUNDS; n += 1) {
    const { id, token } = await ask();
    await tick();
    await until(() => other.received.length === n);
    const [, ofBob] = String(bodies(other.received).at(-1)?.link).split("#");
    const pressed = await Promise.all(
      [token, ofBob].map((one) => post("answer", { token: one, decision: "approve" })),
    );
    expect(pressed.map(({ status }) => status).sort()).toEqual([200, 404]);
    const { events } = (await api.events(id)).body;
    const { by } = events.find(({ status }: { status?: string }) => status === "answered");
    expect(by).toBe(pressed[0]?.status === 200 ? "approver:ann" : "approver:bob");
    // Or its agent would take it before the next one.
    await api.cancel(id);
  }
  expect(await audited("link.answer")).toHaveLength(ROUNDS);
  // Each says why, and none answers later.
  expect(await audited("link.refuse")).toHaveLength(ROUNDS);
});

test("the links of a person are bounded: the oldest answer nothing any more", async () => {
  const { redis, clock } = await setup();
  const links = new LinkStore(redis, 3);
  const ends = Date.now() + clock.offset_ms + 3_600_000;
  const link = {
    person: "approver:ann",
    subscription: "sub_x",
    channel: "ntfy",
    epoch: "",
    digest: "",
  } as const;
  const mint = (question: string, person: string = link.person, until = ends) =>
    links.mint({ ...link, person, delegation: "dlg_0_x", question, may: "answer" }, until);
  const others = await mint("0", "approver:bob");
  const tokens = [
    await mint("1"),
    await mint("2"),
    await mint("2"),
    await mint("3"),
    await mint("4", undefined, ends + 1_000),
  ];
  const found = await Promise.all([others, ...new Set(tokens)].map((token) => links.find(token)));
  expect(found.map((one) => one?.question)).toEqual(["0", undefined, "2", "3", "4"]);
  expect((await redis.keys(`${keys.link("")}*`)).length).toBe(4);
  expect(await redis.pexpiretime(keys.linksOf(link.person))).toBe(ends + 1_000);
  expect(LIMITS.links.value * 700).toBeLessThan(4 * 1024 * 1024);
});
