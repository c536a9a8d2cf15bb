/** Mails to a mail server of the test's own, over real SMTP. */
import { expect, onTestFinished, test } from "vitest";
import { Mailer } from "../../src/engine/subscriptions/channels/mailer.ts";
import { keys } from "../../src/redis/keys.ts";
import { startMailServer } from "../support/mail-server.ts";
import { startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const FROM = "Errand <errand@example.com>";
const PASSWORD = "correct-horse-battery";
const DELIVER = [{ kind: "email", to: "ann@example.com" }];

interface SetUp {
  readonly auth?: string;
  readonly query?: string;
  readonly to?: readonly string[];
}

const setUp = (port: number, { auth = "", query = "", to }: SetUp = {}) =>
  startSubscribed({
    publicUrl: "https://errand.example",
    callbackRetryMs: () => 1_000,
    mail: { url: `smtp://${auth}127.0.0.1:${port}/${query}`, from: FROM, to },
  });

/** A subscription by mail, and how its channel is. */
async function subscribed(port: number) {
  const broker = await setUp(port);
  const { ann, subscribe } = broker;
  const { id } = await subscribe(ann, { events: ["question"], deliver: DELIVER });
  const state = async () => (await ann.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
  return { ...broker, id, state };
}

test("a question is a plain mail with one line as its subject, a link, and no word of what is asked", async () => {
  const { port, received } = await startMailServer({ password: PASSWORD });
  const { ann, subscribe, tick, ask, log } = await setUp(port, { auth: `errand:${PASSWORD}@` });
  const made = await subscribe(ann, { events: ["question"], deliver: DELIVER });
  expect(made.deliver).toMatchObject([{ kind: "email", to: "ann@example.com", state: "ok" }]);
  await tick();
  await ask("Drop the table?");
  await tick();
  await until(() => received.length === 1);
  const [mail] = received;
  expect(mail).toMatchObject({ from: "errand@example.com", to: ["ann@example.com"], user: "errand" });
  expect(mail?.headers).toMatchObject({
    ...{ from: FROM, to: "ann@example.com", subject: "scout asks" },
    "auto-submitted": "auto-generated",
    "content-type": expect.stringMatching(/^text\/plain/),
    "message-id": expect.stringMatching(/^<ntf_[\w-]+@errand>$/),
  });
  expect(mail?.body).toMatch(
    /^scout asks\n\nIt waits for an answer until [0-9T:-]+Z\.\n\nhttps:\/\/errand\.example\/\S+\n*$/,
  );
  expect(mail?.body).not.toContain("<");
  await until(
    async () => (await ann.call("GET", `/v1/subscriptions/${made.id}`)).body.deliver[0].delivered_at !== null,
  );
  expect(log.join("\n")).not.toContain(PASSWORD);
});

test("an unknown mailbox (550) pauses the channel at once; a full one (452) is tried again", async () => {
  let status: number | undefined = 550;
  const { port, received } = await startMailServer({ mailbox: () => status });
  const { ann, id, state, tick, ask, clock } = await subscribed(port);
  await tick();
  await ask();
  await tick();
  await until(async () => (await state()).state !== "ok");
  expect(await state()).toMatchObject({
    ...{ state: "paused", waiting: 1 },
    problem: { message: "The mail server did not take it: status 550." },
  });
  status = 452;
  await ann.call("POST", `/v1/subscriptions/${id}/resume`);
  await tick();
  await until(async () => (await state()).state === "failing");
  status = undefined;
  clock.offset_ms += 1_001;
  await tick();
  await until(() => received.length === 1);
  await until(async () => (await state()).state === "ok");
});

test.each([
  ["the sender", { sender: () => "553 5.7.1 not your address" as const }, "553 5.7.1"],
  ["relaying", { mailbox: () => "550 5.7.1 relaying denied" as const }, "550 5.7.1"],
  ["a full mailbox", { mailbox: () => "552 5.2.2 mailbox full" as const }, "552 5.2.2"],
  ["the text", { data: () => "550 5.7.1 it looks like spam" as const }, "550 5.7.1"],
])("a refusal of %s says nothing of the mailbox: it is tried again", async (_what, answers, status) => {
  const { port } = await startMailServer(answers);
  const { state, tick, ask } = await subscribed(port);
  await tick();
  await ask();
  await tick();
  await until(async () => (await state()).state !== "ok");
  expect(await state()).toMatchObject({
    ...{ state: "failing", waiting: 1 },
    problem: { message: `The mail server did not take it: status ${status}.` },
  });
});

test("a mail whose text is refused three times is dropped, and the next one is sent", async () => {
  const { port, received } = await startMailServer({ data: (count) => (count < 4 ? 554 : undefined) });
  const { state, tick, ask, clock } = await subscribed(port);
  await tick();
  await ask();
  await ask();
  for (let mails = 1; mails <= 4; mails += 1) {
    await tick();
    await until(() => received.length === mails);
    if (mails < 3) await until(async () => (await state()).state === "failing");
    clock.offset_ms += 1_001;
  }
  await until(async () => (await state()).state === "ok");
  expect(await state()).toMatchObject({ waiting: 0, dropped: 1 });
});

test("a server that is away, or fails after it had the mail, gets it again with the same Message-ID", async () => {
  const first = await startMailServer();
  await first.stop();
  const { state, tick, ask, clock } = await subscribed(first.port);
  await tick();
  await ask();
  await tick();
  await until(async () => (await state()).state === "failing");
  expect(await state()).toMatchObject({ waiting: 1 });
  const { received } = await startMailServer({
    port: first.port,
    data: (count) => (count === 1 ? 451 : undefined),
  });
  await until(async () => {
    clock.offset_ms += 1_001;
    await tick();
    return (await state()).state === "ok";
  });
  expect(received).toHaveLength(2);
  expect(received[1]?.headers["message-id"]).toBe(received[0]?.headers["message-id"]);
});

test("STARTTLS is used where it is offered, and a server that is not trusted gets neither mail nor password", async () => {
  const { port, received } = await startMailServer({ offersTls: true, password: PASSWORD });
  const auth = `errand:${PASSWORD}@`;
  const strict = await setUp(port, { auth });
  const one = await strict.subscribe(strict.ann, { events: ["question"], deliver: DELIVER });
  const refused = (await strict.ann.call("POST", `/v1/subscriptions/${one.id}/test`)).body.deliver[0];
  expect(refused).toMatchObject({ delivered: false, problem: expect.stringMatching(/: E\w+\.$/) });
  expect(received).toEqual([]);
  const trusting = await setUp(port, { auth, query: "?tls.rejectUnauthorized=false" });
  const two = await trusting.subscribe(trusting.ann, { events: ["question"], deliver: DELIVER });
  const tested = (await trusting.ann.call("POST", `/v1/subscriptions/${two.id}/test`)).body.deliver[0];
  expect(tested).toEqual({ kind: "email", delivered: true, problem: null });
  expect(received).toMatchObject([{ isSecure: true, user: "errand" }]);
  expect([...strict.log, ...trusting.log].join("\n")).not.toContain(PASSWORD);
});

test("a wrong password is a problem without the password", async () => {
  const { port, received } = await startMailServer({ password: PASSWORD });
  const { ann, subscribe, log } = await setUp(port, { auth: "errand:wrong-secret@" });
  const { id } = await subscribe(ann, { events: ["question"], deliver: DELIVER });
  const [{ problem }] = (await ann.call("POST", `/v1/subscriptions/${id}/test`)).body.deliver;
  expect(problem).toBe("The mail server did not take it: status 535.");
  expect(received).toEqual([]);
  expect(log.join("\n")).not.toContain("wrong-secret");
});

test("a title with line breaks adds no header and no recipient", async () => {
  const { port, received } = await startMailServer();
  const mailer = new Mailer({ url: `smtp://127.0.0.1:${port}`, from: FROM });
  onTestFinished(() => mailer.close());
  const sent = await mailer.send("operator", "ann@example.com", {
    ...{
      id: "ntf_1",
      subscription_id: `sub_${"a".repeat(26)}`,
      type: "test",
      at: "2026-11-29T00:00:00.000Z",
    },
    ...{ title: "scout failed\r\nBcc: eve@example.com\r\n\r\nHello", text: "<b>bold</b>", link: null },
  });
  expect(sent).toEqual({ kind: "delivered" });
  const [mail] = received;
  expect(mail?.to).toEqual(["ann@example.com"]);
  expect(mail?.headers).not.toHaveProperty("bcc");
  expect(mail?.headers.subject).toContain("scout failed");
  expect(mail?.headers["content-type"]).toMatch(/^text\/plain/);
});

test.each([
  [
    undefined,
    "approver:ann",
    ["ann@example.com", "ann@EXAMPLE.com"],
    ["ann@example.org", "ann@a.example.com"],
  ],
  [undefined, "operator", ["ann@example.com", "ann@example.org"], []],
  [
    ["Example.org", "bob@example.net"],
    "operator",
    ["a@example.org", "Bob@example.net"],
    ["ann@example.com", "eve@example.net", "a@a.example.org", "a@bob@example.net.example"],
  ],
  [["*"], "approver:ann", ["ann@example.org"], []],
])("with ERRAND_MAIL_TO %j, %s may mail %j and not %j", (to, owner, allowed, refused) => {
  const mailer = new Mailer({ url: "smtp://mail.example", from: FROM, to });
  expect([...allowed, ...refused].filter((address) => mailer.maySend(owner, address))).toEqual(allowed);
});

test("an address that the operator does not allow is refused, and gets nothing if it was allowed before", async () => {
  const { port, received } = await startMailServer();
  const { ann, api, redis, subscribe, tick, ask } = await setUp(port);
  const strange = { events: ["question"], deliver: [{ kind: "email", to: "ann@elsewhere.example" }] };
  const refused = await ann.call("POST", "/v1/subscriptions", strange);
  expect(refused).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  expect(refused.body.details.issues).toMatchObject([{ path: "deliver.0.to" }]);
  expect(refused.body.detail).toContain("ERRAND_MAIL_TO");
  const { id } = await subscribe(ann, { events: ["question"], deliver: DELIVER });
  const settings = (await redis.hget(keys.subscription(id), "settings")) ?? "";
  const changed = settings.replace("ann@example.com", "ann@elsewhere.example");
  await redis.hset(keys.subscription(id), "settings", changed);
  await tick();
  await ask();
  await tick();
  const channel = async () => (await api.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
  await until(async () => (await channel()).state === "paused");
  expect((await channel()).problem.message).toContain("ERRAND_MAIL_TO");
  const [tested] = (await ann.call("POST", `/v1/subscriptions/${id}/test`)).body.deliver;
  expect(tested).toMatchObject({ delivered: false, problem: expect.stringContaining("ERRAND_MAIL_TO") });
  expect(received).toEqual([]);
});
