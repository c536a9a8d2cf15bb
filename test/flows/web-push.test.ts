/** Web Push at an endpoint of the test's own: the encryption (RFC 8291) and the signature (RFC 8292). */
import { decodeProtectedHeader, importJWK, jwtVerify } from "jose";
import { expect, test } from "vitest";
import { request } from "../support/broker.ts";
import { startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";
import { browserKeys, startPushService } from "../support/web-push.ts";

test("the test decrypts the example of RFC 8291, section 5", () => {
  const browser = browserKeys({
    privateKey: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  });
  const body =
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
  expect(browser.decrypt(Buffer.from(body, "base64url"))).toBe("When I grow up, I want to be a watermelon");
});

test("keys that are not those of a browser are refused: nothing could be encrypted for them", async () => {
  const { ann } = await startSubscribed();
  const { auth } = browserKeys();
  for (const p256dh of ["A".repeat(87), `B${"A".repeat(86)}`]) {
    const deliver = [{ kind: "web_push", url: "https://push.example/x", keys: { p256dh, auth } }];
    const { status, body } = await ann.call("POST", "/v1/subscriptions", { events: ["question"], deliver });
    expect([status, body.details?.issues]).toEqual([
      400,
      [{ path: "deliver.0.keys.p256dh", reason: "is no public key of a browser (P-256)" }],
    ]);
  }
});

test("a push is encrypted for the browser alone, and signed for its push service by the key that browsers get", async () => {
  const { ann, subscribe, log } = await startSubscribed({ publicUrl: "https://errand.example" });
  const [browser, other] = [browserKeys(), browserKeys()];
  const { origin, url, received } = await startPushService();
  const { p256dh, auth } = browser;
  const made = await subscribe(ann, {
    events: ["question"],
    deliver: [{ kind: "web_push", url, keys: { p256dh, auth } }],
  });
  for (const secret of [p256dh, auth, "SECRET-PATH"]) expect(JSON.stringify(made)).not.toContain(secret);
  const tested = await ann.call("POST", `/v1/subscriptions/${made.id}/test`);
  expect(tested.body.deliver).toEqual([{ kind: "web_push", delivered: true, problem: null }]);
  const [push] = received;
  if (!push) throw new Error("no push");
  expect(JSON.parse(browser.decrypt(push.body))).toMatchObject({
    ...{ type: "test", subscription_id: made.id },
    link: expect.stringContaining("https://errand.example/"),
  });
  expect(() => other.decrypt(push.body)).toThrow();
  expect(push.headers).toMatchObject({ "content-encoding": "aes128gcm", ttl: "86400", urgency: "normal" });

  const { key } = (await ann.call("GET", "/v1/web-push-key")).body;
  const [, token = "", sender = ""] =
    /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(String(push.headers.authorization)) ?? [];
  expect(sender).toBe(key);
  const point = Buffer.from(key, "base64url");
  expect([point.length, point[0]]).toEqual([65, 4]);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString("base64url"));
  const publicKey = await importJWK({ kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }, "ES256");
  const { payload } = await jwtVerify(token, publicKey, { audience: origin, algorithms: ["ES256"] });
  expect(decodeProtectedHeader(token)).toEqual({ alg: "ES256", typ: "JWT" });
  const seconds = (payload.exp ?? 0) - Date.now() / 1000;
  expect(seconds > 60 && seconds <= 86_400).toBe(true);
  expect(String(payload.sub)).toMatch(/^(?:https:|mailto:)/);
  for (const secret of [p256dh, auth, "SECRET-PATH", token]) expect(log.join("\n")).not.toContain(secret);
});

test("each push has a key and a salt of its own, a question is urgent, and a long text still fits", async () => {
  const { ann, api, subscribe, tick, ask } = await startSubscribed();
  await api.call("PATCH", "/v1/agents/scout", { notify: { contents: ["web_push"] } });
  const { url, received } = await startPushService();
  const { p256dh, auth, decrypt } = browserKeys();
  const deliver = [{ kind: "web_push", url, keys: { p256dh, auth } }];
  await subscribe(ann, { events: ["question"], deliver });
  await tick();
  const texts = [
    "Short?",
    "ä".repeat(3_000),
    "\u0001".repeat(3_000),
    '\\"'.repeat(1_500),
    "字".repeat(3_000),
  ];
  for (const text of texts) await ask(text);
  await tick();
  await until(() => received.length === texts.length);
  for (const [place, { body, headers }] of received.entries()) {
    expect(headers.urgency).toBe("high");
    // What a push service must take, by RFC 8030.
    expect(body.length).toBeLessThanOrEqual(4_096);
    const { text } = JSON.parse(decrypt(body));
    expect(text.length).toBeGreaterThan(5);
    const [asked, until] = text.split(/\n(?=It waits)/);
    expect(texts[place]?.startsWith(asked.replace(" …", ""))).toBe(true);
    expect(until).toMatch(/^It waits for an answer until \S+Z\.$/);
  }
  for (const [start, end] of [
    [0, 16],
    [21, 86],
  ])
    expect(new Set(received.map(({ body }) => body.toString("hex", start, end))).size).toBe(texts.length);
});

test("where the agent allows it, a push has the buttons that the service worker shows, and they answer", async () => {
  const { ann, api, alice, subscribe, tick, url } = await startSubscribed({
    publicUrl: "https://errand.example",
  });
  await api.call("PATCH", "/v1/agents/scout", { notify: { one_tap: "approve" } });
  const service = await startPushService();
  const { p256dh, auth, decrypt } = browserKeys();
  await subscribe(ann, {
    events: ["question"],
    deliver: [{ kind: "web_push", url: service.url, keys: { p256dh, auth } }],
  });
  await tick();
  const { id } = (await alice.delegate("scout")).body;
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease_id, { text: "Deploy?", action: { name: "deploy", arguments: {} } });
  await tick();
  await until(() => service.received.length === 1);
  const { buttons } = JSON.parse(decrypt(service.received[0]?.body ?? Buffer.of()));
  expect(buttons).toMatchObject([{ decision: "approve" }, { decision: "deny" }]);
  const press = (n: number) => request(url, "POST", "/v1/links/answer", { token: null, body: buttons[n] });
  expect((await press(0)).status).toBe(200);
  expect((await api.get(id)).body.state).toBe("submitted");
  // What the worker then shows.
  expect((await press(1)).body).toMatchObject({ detail: expect.any(String), recovery: expect.any(String) });
  expect((await press(1)).status).toBeGreaterThanOrEqual(400);
});

test("a browser that is gone (404, 410) pauses its channel at once", async () => {
  const { ann, subscribe, tick, ask } = await startSubscribed();
  let status = 410;
  const { url } = await startPushService(() => status);
  const { p256dh, auth } = browserKeys();
  const deliver = [{ kind: "web_push", url, keys: { p256dh, auth } }];
  for (status of [404, 410]) {
    const { id } = await subscribe(ann, { events: ["question"], deliver });
    await tick();
    await ask();
    await tick();
    const state = async () => (await ann.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
    await until(async () => (await state()).state !== "ok");
    expect(await state()).toMatchObject({
      state: "paused",
      problem: { message: `It answered with status ${status}.` },
    });
    await ann.call("DELETE", `/v1/subscriptions/${id}`);
  }
});
