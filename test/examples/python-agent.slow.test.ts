/**
 * The agent in Python with a real gateway. Each test names the numbers of the conformance list in
 * docs/agent-protocol-details.md that it covers. One file, because the last test checks that the others cover the whole list.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { as, client, startBroker, type TestOptions } from "../support/broker.ts";
import { type FaultyProxy, type RecordedCall, startFaultyProxy } from "../support/faulty-proxy.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

const AGENT = fileURLToPath(new URL("../../examples/python/agent.py", import.meta.url));
const PAGE = new URL("../../docs/agent-protocol-details.md", import.meta.url);
const SLOW = "30";

const covered = new Set<number>();

/** A test for these numbers of the conformance list. */
function conforms(numbers: readonly number[], what: string, run: () => Promise<void>): void {
  for (const number of numbers) covered.add(number);
  test(`[${numbers.join(", ")}] ${what}`, { timeout: 120_000 }, run);
}

async function setup({
  spec = {},
  options = {},
}: {
  spec?: Record<string, unknown>;
  options?: TestOptions;
} = {}) {
  const broker = await startBroker(options);
  const admin = client(broker.url);
  await admin.agent("scout", spec);
  const { token, tokenId } = await as(broker.url, "agent:scout");
  const proxy = await startFaultyProxy(broker.url);
  const start = (...args: string[]) => startAgent(proxy.url, token, ["scout", ...args]);
  const delegate = async (task: string) => String((await admin.delegate("scout", { task })).body.id);
  const ended = async (id: string) => {
    const body = await until(async () => {
      const now = (await admin.get(id, "?wait_seconds=15")).body;
      return now.finished_at === null ? undefined : now;
    });
    checkHistory(await eventsOf(admin, id), "finished");
    return body;
  };
  return { ...broker, admin, proxy, token, tokenId, start, delegate, ended };
}

function startAgent(url: string, token: string, args: readonly string[]) {
  requirePython();
  const path = { PATH: process.env.PATH ?? "" };
  const child = spawn("python3", [AGENT, ...args], {
    env: { ...path, ERRAND_URL: url, ERRAND_TOKEN: token, PYTHONDONTWRITEBYTECODE: "1" },
    stdio: ["ignore", "inherit", "pipe"],
  });
  let text = "";
  child.stderr.on("data", (bytes: Buffer) => {
    text += bytes.toString();
  });
  const closed = once(child, "close");
  onTestFinished(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await closed;
  });
  return {
    log: () => text,
    lines: () => text.split("\n").slice(0, -1),
    heard: (words: string) => until(() => text.includes(words), { what: `'${words}' in its log` }),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    exit: async () => {
      await closed;
      return child.exitCode;
    },
  };
}

function requirePython(): void {
  const check = "import sys; sys.exit(sys.version_info < (3, 9))";
  try {
    execFileSync("python3", ["-c", check]);
  } catch (cause) {
    throw new Error("these tests run examples/python/agent.py and need python3, 3.9 or newer; install it", {
      cause,
    });
  }
}

/** Injects a fault into one call to a path with this ending: the first, or the n-th. */
function onNth(proxy: FaultyProxy, ending: string, fault: ReturnType<FaultyProxy["fault"]>, nth = 1): void {
  proxy.fault = (call) => (proxy.to(ending).indexOf(call) === nth - 1 ? fault : undefined);
}

const leaseOf = ({ path }: RecordedCall) => /^\/v1\/leases\/([^/]+)\//.exec(path)?.[1];
const said = (proxy: FaultyProxy) => proxy.calls.map(({ path }) => path.split("/").at(-1));

describe("the agent in Python", () => {
  conforms([1, 2, 16], "works on one delegation after the other", async () => {
    const { proxy, start, delegate, ended, admin, token } = await setup();
    // Members that a later version may add.
    proxy.answering = async ({ path }, answer) => ({
      ...answer,
      news: { from: "tomorrow" },
      ...(path.endsWith("/heartbeat") && {
        messages: [{ messageId: "f1", role: "ROLE_USER", parts: [{ hologram: 1 }] }],
      }),
    });
    const ids = [
      await delegate("how many words\nis this"),
      await delegate("one"),
      await delegate("two words"),
    ];
    const parts = [{ data: { rows: 3 } }, { url: "https://example.org/x" }];
    const other = (await admin.delegate("scout", { message: { parts } })).body.id;
    const agent = start();
    const ends = await Promise.all([...ids, other].map(ended));
    expect(ends.map(({ state, attempt, reply }) => [state, attempt, reply?.parts])).toEqual([
      ["completed", 1, [{ text: "5" }]],
      ["completed", 1, [{ text: "1" }]],
      ["completed", 1, [{ text: "2" }]],
      ["rejected", 1, undefined],
    ]);
    expect(ends[0]).toMatchObject({
      // At most two a second are sent; on a busy machine, a line may take longer than that.
      progress: { message: expect.stringMatching(/^line [12]$/), total: 2 },
      artifacts: [{ artifactId: "counts", parts: [{ text: "3\n" }, { text: "2\n" }] }],
    });
    expect(ends[3].error).toMatchObject({ code: "no_text", message: "there is no text to count" });
    await agent.heard("rejected");
    expect(agent.lines()).toEqual([
      ...ids.flatMap((id) => [`${id} leased, attempt 1`, `${id} completed`]),
      `${other} leased, attempt 1`,
      `${other} rejected`,
    ]);

    let held = 0;
    for (const { path, body, answer } of proxy.calls) {
      if (path.endsWith("/reply")) held -= 1;
      const asked = path.endsWith("/leases") ? body : body.next;
      if (asked) expect([held, asked.max ?? 1]).toEqual([0, 1]);
      held += answer?.leases?.length ?? 0;
    }
    for (const { path, headers } of proxy.calls) {
      expect(headers.authorization).toBe(`Bearer ${token}`);
      expect(path).not.toContain(token);
    }
    expect(agent.log()).not.toContain(token);
  });

  conforms([1, 14], "follows no redirect, and says why it ends", async () => {
    const { proxy, start } = await setup();
    const elsewhere = await startFaultyProxy(proxy.url);
    proxy.fault = () => ({ status: 302, headers: { location: `${elsewhere.url}/v1/agents/scout/leases` } });
    const agent = start();
    expect(await agent.exit()).toBe(1);
    expect(agent.log()).toMatch(/^302 invalid_response: .* answered with HTTP 302, application\/json, '{}'/);
    expect(elsewhere.calls).toEqual([]);
  });

  conforms([4, 7], "does not start work whose lease is lost", async () => {
    const { proxy, start, delegate, ended, admin } = await setup();
    const id = await delegate("never begun");
    proxy.answering = async ({ path }, answer) => {
      if (path.endsWith("/leases") && answer.leases.length > 0)
        await admin.cancel(answer.leases[0].delegation.id);
      return answer;
    };
    const agent = start();
    await agent.heard(`${id} lost: canceled`);
    expect((await ended(id)).state).toBe("canceled");
    expect(said(proxy).slice(0, 2)).toEqual(["leases", "heartbeat"]);
    expect(proxy.to("/leases")[0]?.body.confirm_within_seconds).toBe(5);
    expect(proxy.calls.filter(leaseOf)).toHaveLength(1);
    expect(agent.log()).not.toContain("leased");
  });

  conforms(
    [3, 5, 6],
    "keeps a lease that is shorter than the work, whatever the broker's clock says",
    async () => {
      const { proxy, start, delegate, ended, clock } = await setup({
        spec: { limits: { lease_seconds: 4 } },
        options: { sweepEveryMs: 50 },
      });
      clock.offset_ms = -86_400_000;
      const id = await delegate("one line");
      start("--pause", "8");
      expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
      const beats = proxy.to("/heartbeat").filter(({ body }) => body.wait_seconds > 0);
      // Enough to keep the lease; a quiet machine sends twice as many.
      expect(beats.length).toBeGreaterThan(2);
      for (const { body } of beats) expect(body.wait_seconds).toBeLessThanOrEqual(4 / 3);
      expect(proxy.calls.filter(({ path, left }) => left && !path.endsWith("/leases"))).toEqual([]);
    },
  );

  conforms([5, 12], "sends plain heartbeats while the broker refuses held ones", async () => {
    const { proxy, start, delegate, ended } = await setup({
      spec: { limits: { lease_seconds: 4 } },
      options: { sweepEveryMs: 50 },
    });
    const id = await delegate("one line");
    proxy.fault = ({ path, body }) =>
      path.endsWith("/heartbeat") && body.wait_seconds > 0
        ? { status: 429, headers: { "retry-after": "5" }, body: { code: "quota_exceeded" } }
        : undefined;
    start("--pause", "8");
    expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  });

  conforms([10], "does not repeat an artifact beyond the delegation's limit, and still replies", async () => {
    const { proxy, start, delegate, ended } = await setup();
    const id = await delegate("one line");
    const full = { code: "limit_reached", details: { limit: "delegation_events", maximum: 10_000 } };
    proxy.fault = ({ path, body }) =>
      path.endsWith("/artifacts") || body.progress ? { status: 409, body: full } : undefined;
    start();
    expect(await ended(id)).toMatchObject({ state: "failed", error: { code: "agent_error" } });
    expect(proxy.to("/artifacts")).toHaveLength(1);
  });

  conforms([7], "stops when the delegator cancels, and continues with other work", async () => {
    const { proxy, start, delegate, ended, admin } = await setup();
    const id = await delegate("first\nsecond");
    const agent = start("--pause", "1");
    await until(() => proxy.to("/artifacts").length === 1, { what: "the first line" });
    await admin.cancel(id);
    await agent.heard(`${id} lost: canceled`);
    const next = await delegate("one");
    expect(await ended(next)).toMatchObject({ state: "completed" });
    const [lease] = proxy.to("/artifacts").map(leaseOf);
    const calls = proxy.calls.filter((call) => leaseOf(call) === lease);
    const lost = calls.find(({ status }) => status === 409);
    expect(lost?.answer).toMatchObject({ code: "lease_lost", details: { reason: "canceled" } });
    expect(calls.filter(({ askedAt }) => askedAt > (lost?.answeredAt ?? 0))).toEqual([]);
    expect(calls.map(({ path }) => path).join()).not.toMatch(/reply|release/);
  });

  conforms([7, 16], "stops when the lease is lost for an unknown reason", async () => {
    const { proxy, start, delegate } = await setup();
    const id = await delegate("one line");
    onNth(
      proxy,
      "/heartbeat",
      { status: 409, body: { code: "lease_lost", details: { reason: "eclipsed" } } },
      3,
    );
    const agent = start("--pause", SLOW);
    await agent.heard(`${id} lost: eclipsed`);
    expect(proxy.to("/reply")).toEqual([]);
  });

  conforms([7], "learns late that another worker has its work, and changes nothing", async () => {
    const { proxy, start, delegate, ended, admin, clock, gateway } = await setup({
      spec: { backoff: { initial_ms: 0 } },
    });
    const id = await delegate("one line");
    // As on a sleeping laptop: its heartbeats do not arrive, its lease expires, another worker takes over. Held ones are cut
    // from the start, because one that is still on its way would extend the lease after the clock has moved. The others
    // pass: the agent confirms its lease with one, and has the answers of all before it sends the line.
    proxy.fault = ({ path, body }) =>
      path.endsWith("/heartbeat") && body.wait_seconds > 0 ? "cut" : undefined;
    const agent = start("--pause", SLOW);
    await until(() => proxy.to("/artifacts")[0]?.answeredAt !== undefined, { what: "the line" });
    clock.offset_ms += 61_000;
    await gateway.sweep.tick();
    const { leases } = (await admin.lease("scout", { worker_id: "another" })).body;
    expect(leases[0]).toMatchObject({ attempt: 2, delegation: { id } });
    proxy.fault = () => undefined;
    await agent.heard(`${id} lost: expired`);
    await admin.reply(leases[0].lease_id, { text: "the other's" });
    expect(await ended(id)).toMatchObject({ reply: { parts: [{ text: "the other's" }] }, attempt: 2 });
  });

  conforms([8], "stops by itself after twice the lease without an answer, and returns the work", async () => {
    const { proxy, start, delegate, admin } = await setup({ spec: { limits: { lease_seconds: 1 } } });
    const id = await delegate("one line");
    let away = false;
    proxy.fault = ({ path }) => {
      away ||= path.endsWith("/heartbeat") && proxy.to("/artifacts").length > 0;
      return away ? "cut" : undefined;
    };
    const agent = start("--pause", SLOW);
    await agent.heard(`${id} stopped: the broker is silent`);
    const [line, last] = [proxy.to("/artifacts").at(-1), proxy.to("/release").at(-1)];
    expect((last?.askedAt ?? Infinity) - (line?.askedAt ?? 0)).toBeGreaterThan(1500);
    away = false;
    proxy.fault = () => undefined;
    await agent.heard(`${id} released`);
    expect(proxy.to("/reply")).toEqual([]);
    await until(async () => (await admin.get(id)).body.attempt === 1);
  });

  conforms([7, 12, 14], "waits out what others answer, working, replying and polling", async () => {
    const { proxy, start, delegate, ended } = await setup();
    const foreign = [
      { status: 401, body: { code: "unauthenticated", broker_id: "brk_another" } },
      { status: 404, body: { code: "lease_unknown", broker_id: "brk_another" } },
      { status: 409, body: { detail: "lease_lost" } },
      { status: 302, headers: { location: "http://127.0.0.1:9/" } },
      { status: 200, headers: { "content-type": "text/html" } },
      { status: 200, headers: { "errand-broker": "brk_another" }, body: { leases: [] } },
      { status: 410 },
      { status: 407 },
    ];
    const first = await delegate("one");
    const agent = start("--pause", "0.5");
    await agent.heard(`${first} leased`);
    let left = foreign.slice(0, 4);
    proxy.fault = ({ path }) => (path.endsWith("/leases") ? undefined : left.shift());
    expect(await ended(first)).toMatchObject({ state: "completed", attempt: 1 });
    left = foreign.slice(4);
    proxy.fault = ({ path }) => (path.endsWith("/leases") ? left.shift() : undefined);
    await delegate("ends the poll that waits");
    await until(() => left.length === 0);
    const last = await delegate("two words");
    expect(await ended(last)).toMatchObject({ state: "completed", attempt: 1 });
    expect(agent.log()).toMatch(
      /answered with HTTP 410, application\/json, '{}', which is not this broker's answer/,
    );
  });

  conforms([14], "waits out what others answer to its first poll that waits", async () => {
    const { gateway, proxy, start, delegate, ended } = await setup();
    const agent = start();
    await until(() => gateway.broker.handoff.polls.count("scout") === 1, { what: "a parked poll" });
    const left = [404, 200, 302, 401, 403, 410];
    proxy.fault = () => {
      const status = left.shift();
      return status ? { status, headers: { "content-type": "text/html" } } : undefined;
    };
    proxy.cutAll();
    await until(() => left.length === 0 || agent.lines().length > 6);
    expect(await ended(await delegate("one"))).toMatchObject({ state: "completed", attempt: 1 });
  });

  conforms([9, 12], "repeats a reply until it is answered, no sooner than Retry-After", async () => {
    const { proxy, start, delegate, ended } = await setup();
    const id = await delegate("one");
    const faults = ["deaf", { status: 503, headers: { "retry-after": "1" } }] as const;
    proxy.fault = (call) => faults[proxy.to("/reply").indexOf(call)];
    const agent = start();
    await agent.heard(`${id} completed`);
    const replies = proxy.to("/reply");
    expect(replies.map(({ body }) => body)).toEqual([replies[0]?.body, replies[0]?.body, replies[0]?.body]);
    expect(replies[2]?.answer).toMatchObject({ outcome: "duplicate" });
    expect((replies[2]?.askedAt ?? 0) - (replies[1]?.answeredAt ?? 0)).toBeGreaterThanOrEqual(1000);
    expect((await ended(id)).state).toBe("completed");
  });

  conforms([10], "replies failed when its reply is refused", async () => {
    const { proxy, start, delegate, ended } = await setup();
    const id = await delegate("one");
    onNth(proxy, "/reply", { status: 413, body: { code: "payload_too_large", detail: "too large" } });
    start();
    expect(await ended(id)).toMatchObject({ state: "failed", error: { code: "payload_too_large" } });
    expect(proxy.to("/reply").map(({ body }) => body.state)).toEqual(["completed", "failed"]);
  });

  conforms([11], "sends the whole artifact after a chunk with an unknown outcome", async () => {
    const { proxy, start, delegate, ended } = await setup();
    const id = await delegate("a\nb c\nd e f");
    onNth(proxy, "/artifacts", "deaf", 2);
    start();
    expect(await ended(id)).toMatchObject({
      artifacts: [{ artifactId: "counts", parts: [{ text: "1\n" }, { text: "2\n" }, { text: "3\n" }] }],
    });
    const sent = proxy.to("/artifacts").map(({ body }) => [body.append, body.artifact.parts.length]);
    expect(sent).toEqual([
      [false, 1],
      [true, 1],
      [false, 2],
      [true, 1],
    ]);
  });

  conforms([17, 18], "asks, and continues in another process after the answer", async () => {
    const { proxy, start, delegate, ended, admin } = await setup();
    const id = await delegate("how many\nare these");
    // First the call is lost, then its answer; the held heartbeat reports the loss sooner than a third try would.
    const faults = [{ status: 503 }, "deaf"] as const;
    proxy.fault = (call) => faults[proxy.to("/interrupt").indexOf(call)];
    const agent = start("--ask");
    await agent.heard(`${id} asks`);
    const { interrupt } = (await admin.get(id)).body;
    expect(interrupt.requests).toMatchObject([{ request_id: "what", options: ["words", "characters"] }]);
    const [first, second] = proxy.to("/interrupt");
    expect(second?.body).toEqual(first?.body);
    const calls = proxy.calls.filter((call) => first && leaseOf(call) === leaseOf(first));
    const outcome = calls.find(({ answer }) => answer?.code === "lease_lost" || answer?.interrupt_id);
    expect(calls.filter(({ askedAt }) => askedAt > (outcome?.answeredAt ?? 0))).toEqual([]);
    const asked = proxy.to("/interrupt").length;
    agent.kill("SIGTERM");
    expect(await agent.exit()).toBe(0);
    await admin.answer(id, interrupt.id, { text: "characters" });
    start("--ask");
    expect(await ended(id)).toMatchObject({
      state: "completed",
      attempt: 1,
      reply: { parts: [{ text: "17" }] },
    });
    expect(proxy.to("/interrupt")).toHaveLength(asked);
  });

  conforms([17], "continues at once if the question was answered before", async () => {
    const { proxy, start, delegate, ended, admin } = await setup();
    const id = await delegate("how many");
    const [lease] = (await admin.lease("scout")).body.leases;
    const asked = { request_id: "what", text: "Count what?", options: ["words", "characters"] };
    const { interrupt_id } = (await admin.interrupt(lease.lease_id, asked)).body;
    await admin.answer(id, interrupt_id, { text: "characters" });
    // As if the history did not contain the answer.
    proxy.answering = async ({ path }, answer) => {
      if (path.endsWith("/leases")) for (const { delegation } of answer.leases) delegation.history = [];
      return answer;
    };
    start("--ask");
    expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "8" }] } });
    expect(proxy.to("/interrupt")).toMatchObject([{ answer: { interrupt_id } }]);
  });

  conforms([18, 19], "acts once on each follow-up, also on those that another worker received", async () => {
    const { proxy, start, delegate, ended, admin } = await setup();
    const id = await delegate("one\ntwo");
    await admin.call("POST", `/v1/delegations/${id}/messages`, { text: "and three" });
    const [lease] = (await admin.lease("scout")).body.leases;
    const { messages } = (await admin.heartbeat(lease.lease_id)).body;
    await admin.heartbeat(lease.lease_id, { seen: messages[0].messageId });
    await admin.call("POST", `/v1/leases/${lease.lease_id}/release`, {});
    // Every answer repeats all of them, as if two heartbeats had overlapped.
    const all: unknown[] = [];
    proxy.answering = async ({ path }, answer) => {
      if (!path.endsWith("/heartbeat") || !answer.messages) return answer;
      all.push(...answer.messages);
      return { ...answer, messages: [...all] };
    };
    start("--pause", "1");
    await until(() => proxy.to("/artifacts").length === 1, { what: "the first line" });
    await admin.call("POST", `/v1/delegations/${id}/messages`, { text: "and so\non" });
    expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "7" }] } });
    const seen = proxy.to("/heartbeat").flatMap(({ body }) => body.seen ?? []);
    const { history } = (await admin.get(id)).body;
    expect(new Set(seen)).toEqual(new Set(history.map(({ messageId }: { messageId: string }) => messageId)));
  });

  conforms([12, 13], "survives the restart of a gateway, working and waiting", async () => {
    const { gateway, another, proxy, start, delegate, ended } = await setup();
    const atWork = start("--pause", "3");
    const id = await delegate("one line");
    await until(() => proxy.to("/artifacts").length === 1, { what: "work" });
    const waiting = start();
    await until(() => gateway.broker.handoff.polls.count("scout") === 1, { what: "a parked poll" });
    await gateway.close();
    await waiting.heard("the broker is away");
    // Away long enough for several retries.
    await until(() => proxy.to("/leases").filter(({ status }) => status === undefined).length > 3, {
      timeoutMs: 50_000,
    });
    await another({ port: gateway.port });
    expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
    await atWork.heard(`${id} completed`);
    const next = await delegate("one");
    expect(await ended(next)).toMatchObject({ state: "completed", attempt: 1 });

    const polls = proxy.to("/leases");
    // The first poll of each agent does not wait.
    const early = polls.findIndex(
      ({ answer, body }) => body.wait_seconds > 0 && answer?.leases?.length === 0,
    );
    expect(early).toBeGreaterThanOrEqual(0);
    const { worker_id } = polls[early]?.body ?? {};
    // The other agent polls as it likes.
    const again = polls.slice(early + 1).find(({ body }) => body.worker_id === worker_id);
    const pause = (again?.askedAt ?? 0) - (polls[early]?.answeredAt ?? 0);
    expect(pause).toBeGreaterThanOrEqual(200);
  });

  conforms([14], "ends when its token is revoked", async () => {
    const { gateway, proxy, start, admin, tokenId } = await setup();
    const agent = start();
    await until(() => gateway.broker.handoff.polls.count("scout") === 1, { what: "a parked poll" });
    await admin.call("DELETE", `/v1/tokens/${tokenId}`);
    expect(await agent.exit()).toBe(1);
    expect(agent.log()).toMatch(/^401 unauthenticated: /);
    expect(proxy.calls.map(({ body }) => body.wait_seconds)).toEqual([0, 20]);
  });

  conforms([15], "releases its work when it stops", async () => {
    const { proxy, start, delegate, admin } = await setup();
    const id = await delegate("one line");
    const agent = start("--pause", SLOW);
    await until(() => proxy.to("/artifacts").length === 1, { what: "work" });
    agent.kill("SIGTERM");
    expect(await agent.exit()).toBe(0);
    expect(agent.lines()).toEqual([`${id} leased, attempt 1`, `${id} released`]);
    expect((await admin.get(id)).body).toMatchObject({ state: "submitted", attempt: 1, lease: null });
    expect(proxy.to("/leases")).toHaveLength(1);
    const second = start();
    await second.heard(`${id} completed`);
  });

  conforms([15], "closes its poll when it stops", async () => {
    const { gateway, start } = await setup();
    const agent = start();
    await until(() => gateway.broker.handoff.polls.count("scout") === 1, { what: "a parked poll" });
    const toldAt = performance.now();
    agent.kill("SIGTERM");
    expect(await agent.exit()).toBe(0);
    // Sooner than the poll ends, and than the grace period for work.
    expect(performance.now() - toldAt).toBeLessThan(8_000);
    expect(agent.log()).toBe("");
    await until(() => gateway.broker.handoff.polls.count("scout") === 0, { what: "the poll to end" });
  });
});

test("every number of the conformance list is covered", async () => {
  const page = await readFile(PAGE, "utf8");
  const list = page.slice(page.indexOf("## Conformance list"));
  const numbers = [...list.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
  expect(numbers.length).toBeGreaterThan(10);
  expect([...covered].sort((a, b) => a - b)).toEqual(numbers);
});
