/**
 * Something else answers in the broker's place. Only an answer that has the broker's id ends a worker, its command, or a
 * wait; any other is an outage.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Admin } from "../../../src/client/admin.ts";
import { Agent } from "../../../src/client/agent.ts";
import { Delegator } from "../../../src/client/delegator.ts";
import type { ErrandApiError } from "../../../src/client/errors.ts";
import { Pages } from "../../../src/client/pages.ts";
import type { AgentEvent } from "../../../src/client/work.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { FOREIGN_ANSWERS, startFront } from "../../support/front.ts";
import { until } from "../../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

const thrownBy = async (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: ErrandApiError) => error,
  );

/** A worker behind a front; its handler runs until the test lets it finish. */
async function startWorker(gateway: string, name: string, token = OPERATOR) {
  const api = client(gateway);
  await api.agent(name);
  const front = await startFront(gateway);
  const events: AgentEvent[] = [];
  const running: { finish?: (() => void) | undefined; signal?: AbortSignal } = {};
  const options = { url: front.url, token, agent: name, onEvent: (event: AgentEvent) => events.push(event) };
  const agent = new Agent(options, (work) => {
    running.signal = work.signal;
    return new Promise((resolve) => {
      running.finish = () => resolve("done");
    });
  });
  const run = { promise: agent.run(), ended: false };
  run.promise.then(
    () => (run.ended = true),
    () => (run.ended = true),
  );
  onTestFinished(() => agent.stop());
  const started = async () => {
    running.finish = undefined;
    const { body } = await api.delegate(name);
    await until(() => running.finish);
    return body.id;
  };
  const completed = async (id: string) => {
    const attempt = await until(async () => {
      const { body } = await api.get(id);
      return body.state === "completed" && body.attempt;
    });
    expect([name, attempt]).toEqual([name, 1]);
    // Until its answer arrives, the worker repeats the reply and does not poll.
    await until(() => events.some((event) => event.type === "replied" && event.work.delegation.id === id));
  };
  return { api, front, events, running, run, agent, started, completed };
}

test("no foreign answer ends a worker, aborts its handler or loses its result", async () => {
  const { url } = await startBroker();
  const kinds = Object.entries(FOREIGN_ANSWERS);
  await Promise.all(
    kinds.map(async ([kind, foreign], index) => {
      const { front, running, run, events, started, completed } = await startWorker(url, `scout-${index}`);
      // While it works.
      const id = await started();
      front.replace(foreign);
      await until(() => front.count("/heartbeat") >= 2, { what: `${kind}: heartbeats` });
      expect([kind, running.signal?.aborted, run.ended]).toEqual([kind, false, false]);
      // While it replies.
      running.finish?.();
      await until(() => front.count("/reply") >= 2, { what: `${kind}: replies` });
      front.restore();
      await completed(id);
      // While it waits for work.
      front.replace(foreign);
      await until(() => front.count("/leases") >= 2, { what: `${kind}: polls` });
      front.restore();
      const next = await started();
      running.finish?.();
      await completed(next);
      expect([kind, run.ended, events.some(({ type }) => type === "lost")]).toEqual([kind, false, false]);
    }),
  );
});

test("another broker at the same address is an outage, and the worker names it", async () => {
  const [first, second] = [await startBroker(), await startBroker()];
  const { front, run, events, running, started, completed } = await startWorker(first.url, "scout");
  const id = await started();
  front.replace((_outgoing, _incoming, socket) => socket.destroy());
  front.restore(second.url);
  running.finish?.();
  const said = await until(() =>
    events.find((event) => event.type === "retrying" && event.error.code === "invalid_response"),
  );
  const message = said.type === "retrying" && said.error.message;
  expect(message).toContain(second.gateway.broker.id);
  expect(message).toContain(first.gateway.broker.id);
  front.restore(first.url);
  await completed(id);
  expect(run.ended).toBe(false);
});

test("the broker's own refusal of the token still ends the worker", async () => {
  const { url } = await startBroker();
  await client(url).agent("scout");
  const { token, tokenId } = await as(url, "agent:scout");
  const { run, front, started, running, completed } = await startWorker(url, "scout", token);
  const id = await started();
  running.finish?.();
  await completed(id);
  front.replace(FOREIGN_ANSWERS["401 with a page"] ?? (() => undefined));
  await until(() => front.count("/leases") >= 2);
  expect(run.ended).toBe(false);
  await client(url).call("DELETE", `/v1/tokens/${tokenId}`);
  front.restore();
  await expect(run.promise).rejects.toMatchObject({ code: "unauthenticated", status: 401 });
});

describe("at a first start", () => {
  test("an address that is not a broker's is refused at once, with what answered", async () => {
    const front = await startFront("http://127.0.0.1:9");
    for (const [kind, foreign] of Object.entries(FOREIGN_ANSWERS)) {
      // 429 and 5xx are those of a proxy whose broker starts; nobody knows yet which broker is the right one.
      if (/^(?:429|5\d\d)|closed|another broker/.test(kind)) continue;
      front.replace(foreign);
      const agent = new Agent({ url: front.url, token: OPERATOR, agent: "scout" }, () => "done");
      const error = await thrownBy(agent.run());
      expect([kind, error?.code]).toEqual([
        kind,
        expect.stringMatching(/^(?:invalid_response|not_a_broker|proxy_auth_required)$/),
      ]);
      expect(error?.message).toContain(front.url);
    }
    front.replace(FOREIGN_ANSWERS["404 of an ingress"] ?? (() => undefined));
    const error = await thrownBy(new Delegator({ url: front.url, token: OPERATOR }).get("dlg_1"));
    expect(error).toMatchObject({
      code: "invalid_response",
      category: "CONFIG",
      status: 0,
      details: { status: 404 },
      message: `${front.url} answered with HTTP 404, text/plain, 'default backend - 404': this is not an answer of an Errand broker`,
    });
  });

  test("a service that may start before its broker waits", async () => {
    const { url } = await startBroker();
    await client(url).agent("scout");
    const front = await startFront(url);
    front.replace(FOREIGN_ANSWERS["404 of an ingress"] ?? (() => undefined));
    const agent = new Agent(
      { url: front.url, token: OPERATOR, agent: "scout", failFast: false },
      () => "done",
    );
    const run = agent.run();
    await until(() => front.count("/leases") >= 2);
    front.restore();
    const { body } = await client(url).delegate("scout");
    await until(async () => (await client(url).get(body.id)).body.state === "completed");
    await agent.stop();
    await run;
  });
});

test("waits, streams and inboxes go on after a foreign answer, and skip nothing", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const front = await startFront(url);
  const delegator = new Delegator({ url: front.url, token: OPERATOR });
  const { id } = await delegator.delegate({ target: "scout", task: "x" });
  const seen: string[] = [];
  const watched = (async () => {
    for await (const event of delegator.watch(id)) seen.push(event.type);
  })();
  const waited = delegator.wait(id);
  const inbox = delegator.results();
  const first = inbox.next();
  await until(() => seen.length === 1);
  for (const kind of ["204", "404 of an ingress", "401 of another broker", "302 to a sign-in"]) {
    front.replace(FOREIGN_ANSWERS[kind] ?? (() => undefined));
    await until(() => [`/${id}`, "/events", "/results"].every((path) => front.count(path) >= 1));
    front.restore();
  }
  const { body } = await api.lease("scout");
  await api.reply(body.leases[0].lease_id);
  await watched;
  expect(await waited).toMatchObject({ state: "completed" });
  expect((await first).value).toMatchObject({ delegation: { id } });
  await inbox.return();
});

describe("a first call that waits", () => {
  const FIRST = [
    "404 of an ingress",
    "200 with a page",
    "302 to a sign-in",
    "401 with a page",
    "403 of a firewall",
    "410",
  ];

  test.each(FIRST)("of an idle worker survives a %s", async (kind) => {
    const { url, gateway } = await startBroker();
    const { front, run, started, running, completed } = await startWorker(url, "scout");
    await until(() => gateway.broker.handoff.polls.count("scout") === 1, { what: "a parked poll" });
    front.replace(FOREIGN_ANSWERS[kind] ?? (() => undefined));
    await until(() => front.count("/leases") >= 2 || run.ended, { what: "polls" });
    expect(run.ended).toBe(false);
    front.restore();
    const id = await started();
    running.finish?.();
    await completed(id);
  });

  const calls: Record<string, (url: string, id: string, signal: AbortSignal) => Promise<unknown>> = {
    wait: (url, id, signal) => new Delegator({ url, token: OPERATOR }).wait(id, { signal }),
    get: (url, id, signal) => new Delegator({ url, token: OPERATOR }).get(id, { waitSeconds: 60, signal }),
    inbox: (url, _id, signal) => new Delegator({ url, token: OPERATOR }).results({ signal }).next(),
    "page of the inbox": (url, _id, signal) =>
      new Pages({ url, token: OPERATOR }).results({ waitSeconds: 60 }, signal),
    delegate: (url, _id, signal) =>
      new Delegator({ url, token: OPERATOR }).delegate(
        { target: "scout", task: "x" },
        { waitSeconds: 60, signal },
      ),
    stream: async (url, id, signal) => {
      for await (const _event of new Delegator({ url, token: OPERATOR }).watch(id, { signal }));
    },
  };
  test.each(Object.entries(calls))("of a delegator survives a foreign answer: %s", async (what, call) => {
    const { url } = await startBroker();
    await client(url).agent("scout");
    const { body } = await client(url).delegate("scout");
    const front = await startFront(url);
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    let failure: unknown;
    const done = call(front.url, body.id, stop.signal).catch((error: unknown) => {
      failure = error;
    });
    const waits = () => (what === "stream" ? front.begun : front.passed.length === 2 && front.parked) === 1;
    await until(waits, { what: "a call without a wait, then one that waits", timeoutMs: 10_000 });
    front.replace(FOREIGN_ANSWERS["404 of an ingress"] ?? (() => undefined));
    await until(() => front.answered.length >= 2 || failure, { what: "retries" });
    expect(failure).toBeUndefined();
    stop.abort();
    await done;
  });
});

test("secrets that an answer repeats are not shown, nor are its control characters", async () => {
  const front = await startFront("http://127.0.0.1:9");
  front.replace((outgoing, incoming) =>
    outgoing.writeHead(404).end(`\u001b[31m no ${incoming.headers.authorization} \u202e here`),
  );
  const error = await thrownBy(new Admin({ url: front.url, token: "errand_secret" }).status());
  expect(error?.message).toContain("no content type, 'no Bearer ***  here'");
});

test("a foreign Retry-After is followed for a minute at most", async () => {
  const front = await startFront("http://127.0.0.1:9");
  front.replace((outgoing) => outgoing.writeHead(503, { "retry-after": "86400" }).end());
  const error = await thrownBy(
    new Delegator({ url: front.url, token: OPERATOR, retryForMs: 0 }).get("dlg_1"),
  );
  expect(error).toMatchObject({ category: "TRANSPORT", retryable: true, retryAfterMs: 60_000 });
});
