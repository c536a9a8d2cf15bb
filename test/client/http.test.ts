/** How the client reports answers, refusals and outages to its caller. */
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { Delegator } from "../../src/client/delegator.ts";
import { ErrandApiError } from "../../src/client/errors.ts";
import { Http, route } from "../../src/client/http.ts";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { delegationLike, ID, stubBroker } from "./stub-broker.ts";

/** A URL where nothing listens. */
async function unusedUrl(): Promise<string> {
  const stub = await stubBroker(() => undefined);
  await stub.close();
  return stub.url;
}

async function thrownBy(promise: Promise<unknown>): Promise<ErrandApiError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof ErrandApiError)) throw new Error(`expected a refusal, got ${String(thrown)}`);
  return thrown;
}

describe("answers", () => {
  test("unknown fields are ignored, also in nested objects", async () => {
    const lease = {
      worker_id: "w",
      granted_at: "2026-01-01T00:00:00.000Z",
      expires_at: "2026-01-01T00:01:00.000Z",
    };
    const stub = await stubBroker((_request, answer) =>
      answer.json(
        delegationLike({
          colour: "blue",
          lease: { ...lease, shard: 7 },
          progress: { message: "x", mood: 1 },
        }),
      ),
    );
    const delegation = await new Delegator({ url: stub.url, token: "t" }).get(ID);
    expect(delegation).not.toHaveProperty("colour");
    expect(delegation.lease).toEqual(lease);
    expect(delegation.progress).toEqual({ message: "x" });
    expect(stub.seen[0]?.headers.authorization).toBe("Bearer t");
  });

  test("an answer that is not a broker's is reported as invalid_response", async () => {
    const stub = await stubBroker((_request, answer) => answer.raw.end("<html>hello</html>"));
    const error = await thrownBy(new Delegator({ url: stub.url }).get(ID));
    expect(error).toMatchObject({
      ...{ code: "invalid_response", category: "CONFIG", status: 0, details: { status: 200 } },
      message: `${stub.url} answered with HTTP 200, no content type, 'hello': this is not an answer of an Errand broker`,
    });
  });

  test("a redirect is not followed, so the token is not sent elsewhere", async () => {
    const other = await stubBroker((_request, answer) => answer.json({}));
    const stub = await stubBroker((_request, answer) => {
      answer.raw.writeHead(307, { location: `${other.url}/` }).end();
    });
    const error = await thrownBy(new Delegator({ url: stub.url, token: "t" }).get(ID));
    expect(error).toMatchObject({ category: "CONFIG", details: { status: 307 } });
    expect(other.seen).toEqual([]);
  });

  test.each([
    ["https://ann:hush@sso.example/sign in?token=hush#hush", "https://sso.example/sign%20in"],
    ["/login?next=hush", "SELF/login"],
    ["//other.example\t/a", "http://other.example/a"],
    ["javascript:alert('hush')", "an address with javascript:"],
    ["https://", "an address that is not a URL"],
  ])("a redirect to %j is named without what may be secret", async (location, named) => {
    const stub = await stubBroker((_request, answer) => answer.raw.writeHead(302, { location }).end());
    const { message } = await thrownBy(new Delegator({ url: stub.url, token: "tok_1" }).get(ID));
    expect(message).toMatch(
      new RegExp(`answered with HTTP 302, a redirect to ${named.replace("SELF", stub.url)}, no content type`),
    );
    expect(message).not.toContain("hush");
  });

  test.each([
    { what: "HTML", body: "<html>hello</html>", outcome: undefined },
    { what: "another API's refusal", status: 404, body: '{"error":"no"}', outcome: undefined },
    { what: "JSON, from which a proxy may have removed the id", body: "{}", outcome: "unknown" },
    { what: "a proxy's 504", status: 504, body: "", outcome: "unknown" },
  ])("whether the call may have arrived: $what", async ({ status = 200, body, outcome }) => {
    const stub = await stubBroker((_request, answer) => answer.raw.writeHead(status).end(body));
    const delegator = new Delegator({ url: stub.url, retryForMs: 0 });
    const error = await thrownBy(delegator.delegate({ target: "scout", task: "x" }));
    expect(error.details?.outcome).toBe(outcome);
  });

  test("a base path before /v1 is kept", async () => {
    const stub = await stubBroker((_request, answer) => answer.json(delegationLike()));
    await new Delegator({ url: `${stub.url}/broker/` }).get(ID);
    expect(stub.seen[0]?.path).toBe(`/broker/v1/delegations/${ID}`);
  });

  test("a base path that no proxy removes is named", async () => {
    const { url } = await startBroker();
    const error = await thrownBy(new Delegator({ url: `${url}/v1/`, token: OPERATOR }).get(ID));
    expect(error).toMatchObject({
      code: "not_found",
      message: `There is no GET /v1/v1/delegations/${ID}. The broker's URL has the path '/v1', and no proxy removes it: pass ${url}.`,
    });
  });
});

describe("refusals", () => {
  test("a problem document becomes an error with all its fields", async () => {
    const stub = await stubBroker((_request, answer) =>
      answer.problem(429, "queue_full", "TRANSPORT", { details: { waiting: 9 }, retry_after: 7 }),
    );
    const error = await thrownBy(new Delegator({ url: stub.url }).delegate({ target: "scout", task: "x" }));
    expect(error).toMatchObject({
      code: "queue_full",
      category: "TRANSPORT",
      status: 429,
      retryable: true,
      recovery: "Do this.",
      details: { waiting: 9 },
      requestId: "req_1",
      retryAfterMs: 7000,
      message: "about queue_full",
    });
    expect(stub.seen).toHaveLength(1);
  });

  test("a proxy's 502 is an outage, its 404 a wrong URL", async () => {
    const status = { now: 502 };
    const stub = await stubBroker((_request, answer) => answer.raw.writeHead(status.now).end("<h1>no</h1>"));
    const away = await thrownBy(new Delegator({ url: stub.url, retryForMs: 0 }).get(ID));
    expect(away).toMatchObject({
      code: "invalid_response",
      category: "TRANSPORT",
      details: { status: 502, outcome: "unknown" },
      retryable: true,
    });
    status.now = 404;
    const wrong = await thrownBy(new Delegator({ url: stub.url }).get(ID));
    expect(wrong).toMatchObject({ category: "CONFIG", details: { status: 404 }, retryable: false });
  });

  test("a refused and a cut connection have different codes: only the second leaves the outcome unknown", async () => {
    const closed = await thrownBy(new Delegator({ url: await unusedUrl(), retryForMs: 0 }).get(ID));
    expect(closed).toMatchObject({
      code: "unreachable",
      category: "TRANSPORT",
      status: 0,
      details: undefined,
    });
    const stub = await stubBroker((_request, answer) => answer.cut());
    const lost = await thrownBy(new Delegator({ url: stub.url, retryForMs: 0 }).get(ID));
    expect(lost).toMatchObject({ code: "connection_lost", details: { outcome: "unknown" } });
  });

  test("an id cannot change the path", async () => {
    expect(route`/v1/delegations/${"a/../b?c"}/x`).toBe("/v1/delegations/a%2F..%2Fb%3Fc/x");
    expect(() => route`/v1/delegations/${".."}`).toThrow(ErrandApiError);
    expect(() => new Http({ url: "localhost:4180" })).toThrow(/not an http/);
  });
});

describe("repeats", () => {
  test("a 503 and a cut connection are retried with the same Idempotency-Key", async () => {
    const stub = await stubBroker((_request, answer) => {
      if (stub.seen.length === 1) answer.problem(503, "redis_unavailable", "TRANSPORT");
      else if (stub.seen.length === 2) answer.cut();
      else answer.json(delegationLike(), 202);
    });
    const retries: string[] = [];
    const delegator = new Delegator({ url: stub.url, onRetry: (error) => retries.push(error.code) });
    const delegation = await delegator.delegate({ target: "scout", task: "x" });
    expect(delegation.id).toBe(ID);
    expect(retries).toEqual(["redis_unavailable", "connection_lost"]);
    const keys = new Set(stub.seen.map(({ headers }) => headers["idempotency-key"]));
    expect(keys.size).toBe(1);
    expect(stub.seen.map(({ body }) => body)).toEqual(Array(3).fill({ target: "scout", task: "x" }));
  });

  test("reads are retried after a 429; a refused delegate is thrown", async () => {
    const stub = await stubBroker((_request, answer) => {
      if (stub.seen.length % 2 === 1) answer.problem(429, "rate_limited", "TRANSPORT");
      else answer.json(delegationLike());
    });
    const delegator = new Delegator({ url: stub.url });
    expect((await delegator.get(ID)).id).toBe(ID);
    const refused = await thrownBy(delegator.delegate({ target: "scout", task: "x" }));
    expect([refused.code, stub.seen.length]).toEqual(["rate_limited", 3]);
  });

  test("no retry starts before Retry-After", async () => {
    const times: number[] = [];
    const stub = await stubBroker((_request, answer) => {
      times.push(performance.now());
      if (times.length === 1) answer.problem(503, "overloaded", "TRANSPORT", { retry_after: 1 });
      else answer.json(delegationLike());
    });
    await new Delegator({ url: stub.url }).get(ID);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("a refused connection is an error at once, unless failFast is false", async () => {
    const url = await unusedUrl();
    const retries: string[] = [];
    const onRetry = (error: ErrandApiError) => retries.push(error.code);
    const error = await thrownBy(new Delegator({ url, onRetry }).delegate({ target: "scout", task: "x" }));
    expect(error).toMatchObject({ code: "unreachable", message: `nothing answers at ${url} (ECONNREFUSED)` });
    expect(error.recovery).toContain("errand serve");
    const watching = new Delegator({ url, onRetry }).watch(ID);
    await expect(watching.next()).rejects.toMatchObject({ code: "unreachable" });
    expect(retries).toEqual([]);
    await thrownBy(new Delegator({ url, onRetry, failFast: false, retryForMs: 1000 }).get(ID));
    expect(retries.length).toBeGreaterThan(0);
  });

  test("a browser's vague error means unreachable only before the first answer", async () => {
    const stub = await stubBroker((_request, answer) => answer.json(delegationLike()));
    let calls = 0;
    const vague: typeof fetch = (input, init) => {
      calls += 1;
      return calls === 2 ? fetch(input, init) : Promise.reject(new TypeError("Failed to fetch"));
    };
    const delegator = new Delegator({ url: stub.url, fetch: vague, retryForMs: 0 });
    const first = await thrownBy(delegator.get(ID));
    expect(first).toMatchObject({ code: "unreachable", details: { outcome: "unknown" } });
    expect(first.recovery).toContain("ERRAND_ALLOWED_ORIGINS");
    await delegator.get(ID);
    expect(await thrownBy(delegator.get(ID))).toMatchObject({ code: "connection_lost" });
  });

  test("a refused connection is retried if the broker answered a moment ago", async () => {
    let calls = 0;
    const stub = await stubBroker((_request, answer) => {
      if (stub.seen.length === 1) answer.cut();
      else answer.json(delegationLike());
    });
    const refusing: typeof fetch = (input, init) => {
      calls += 1;
      const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
      return calls === 2 ? Promise.reject(new TypeError("failed", { cause: refused })) : fetch(input, init);
    };
    const delegator = new Delegator({ url: stub.url, fetch: refusing });
    expect((await delegator.get(ID)).id).toBe(ID);
    expect(calls).toBe(3);
  });

  test("the reason of the caller's abort is thrown unchanged", async () => {
    const stub = await stubBroker(() => undefined);
    const controller = new AbortController();
    const waiting = new Delegator({ url: stub.url }).get(ID, { waitSeconds: 20, signal: controller.signal });
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});

describe("errors that no broker causes are thrown at once, without a retry", () => {
  test.each(["a port that fetch refuses", "TLS where there is none", "no HTTP at all"])(
    "%s",
    async (what) => {
      const plain = await stubBroker((_request, answer) => answer.json({}));
      const mute = createServer((socket) => socket.end("220 mail.example ESMTP\r\n"));
      mute.listen(0, "127.0.0.1");
      await once(mute, "listening");
      onTestFinished(() => void mute.close());
      const address = mute.address();
      const port = typeof address === "object" && address ? address.port : 0;
      const urls: Record<string, string> = {
        "a port that fetch refuses": "http://127.0.0.1:6000",
        "TLS where there is none": plain.url.replace("http:", "https:"),
        "no HTTP at all": `http://127.0.0.1:${port}`,
      };
      const repeats: unknown[] = [];
      const onRetry = (error: unknown) => repeats.push(error);
      const error = await thrownBy(new Delegator({ url: urls[what] ?? "", onRetry }).get(ID));
      expect(error).toMatchObject({ code: "not_a_broker", category: "CONFIG", retryable: false });
      expect(repeats).toEqual([]);
    },
  );
});

describe("waiting", () => {
  test("holds all requests but the first, and repeats them until the delegation is finished", async () => {
    const stub = await stubBroker((_request, answer) =>
      answer.json(delegationLike({ state: stub.seen.length < 3 ? "working" : "completed" })),
    );
    const delegation = await new Delegator({ url: stub.url }).wait(ID, { timeoutSeconds: 10 });
    expect(delegation.state).toBe("completed");
    const held = stub.seen.map(({ query }) => Number(query.get("wait_seconds")));
    expect(held).toEqual([0, expect.closeTo(10, 0), expect.any(Number)]);
  });

  test("ends after its timeout, whether the broker answers or not", async () => {
    const held = await stubBroker((request, answer) => {
      const ms = Number(request.query.get("wait_seconds")) * 1000;
      setTimeout(() => answer.json(delegationLike({ state: "working" })), ms);
    });
    const silent = await stubBroker(() => undefined);
    const [polite, rude] = await Promise.all(
      [held, silent].map(({ url }) => thrownBy(new Delegator({ url }).wait(ID, { timeoutSeconds: 0.3 }))),
    );
    expect(polite).toMatchObject({ code: "wait_ran_out", category: "TIMEOUT", retryable: true });
    expect(polite?.message).toContain("working");
    expect(rude).toMatchObject({ code: "wait_ran_out" });
  });
});
