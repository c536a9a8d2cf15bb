/** Pages of other origins: allowed ones may send requests and read responses, others are refused. */
import { describe, expect, test } from "vitest";
import { as, OPERATOR, request, startBroker } from "../../support/broker.ts";

const PAGE = "https://ops.example";

const preflight = (url: string, origin: string, path = "/v1/delegations") =>
  request(url, "OPTIONS", path, {
    token: null,
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,idempotency-key,prefer",
    },
  });

const allowOrigin = ({ headers }: { headers: Headers }) => headers.get("access-control-allow-origin");

describe("a page of an allowed origin", () => {
  test("may send a preflight without a token", async () => {
    const { url } = await startBroker({ allowedOrigins: [PAGE] });
    const answer = await preflight(url, PAGE);
    expect(answer.status).toBe(204);
    expect(allowOrigin(answer)).toBe(PAGE);
    expect(answer.headers.get("vary")).toContain("Origin");
    const sent = answer.headers.get("access-control-allow-headers")?.toLowerCase().split(", ");
    expect(sent).toEqual(
      expect.arrayContaining([
        ...["authorization", "content-type", "idempotency-key", "last-event-id", "prefer"],
        // Of pages that are traced.
        ...["traceparent", "tracestate", "baggage"],
      ]),
    );
    const methods = answer.headers.get("access-control-allow-methods")?.split(", ");
    expect(methods).toEqual(expect.arrayContaining(["GET", "POST", "PUT", "DELETE"]));
    expect(Number(answer.headers.get("access-control-max-age"))).toBeGreaterThan(0);
    expect(answer.headers.has("access-control-allow-credentials")).toBe(false);
  });

  test("can read responses, errors, streams, and the headers that a client needs", async () => {
    const { url } = await startBroker({ allowedOrigins: [PAGE] });
    const caller = await as(url, "caller:page");
    await request(url, "PUT", "/v1/agents/scout", { body: {} });
    const from = { origin: PAGE };
    const accepted = await caller.delegate("scout", {}, from);
    const unknown = await caller.call("GET", "/v1/nothing", undefined, from);
    const nobody = await request(url, "GET", "/v1/agents", { token: null, headers: from });
    for (const [answer, status] of [
      [accepted, 202],
      [unknown, 404],
      [nobody, 401],
    ] as const) {
      expect([answer.status, allowOrigin(answer)]).toEqual([status, PAGE]);
      expect(answer.headers.get("access-control-expose-headers")?.toLowerCase().split(", ")).toEqual(
        expect.arrayContaining(["location", "retry-after", "idempotency-replayed", "x-request-id"]),
      );
    }
    const stream = await fetch(`${url}/v1/delegations/${accepted.body.id}/events`, {
      headers: { ...from, authorization: `Bearer ${OPERATOR}`, accept: "text/event-stream" },
    });
    expect(allowOrigin(stream)).toBe(PAGE);
    await stream.body?.cancel();
  });

  test("an allowed origin allows only itself, an allowed host every origin on it", async () => {
    const { url } = await startBroker({ allowedOrigins: [PAGE, "wiki.example"] });
    const answers = await Promise.all(
      [
        "https://ops.example",
        "http://ops.example",
        "https://ops.example:8443",
        "https://x.ops.example",
        "http://wiki.example",
        "https://wiki.example:8443",
        "null",
      ].map((origin) => preflight(url, origin)),
    );
    expect(answers.map(({ status }) => status)).toEqual([204, 403, 403, 403, 204, 204, 403]);
  });
});

test("a page of another origin can read nothing", async () => {
  const { url } = await startBroker({ allowedOrigins: [PAGE] });
  const asked = await preflight(url, "https://evil.example");
  expect(asked.status).toBe(403);
  const called = await request(url, "GET", "/v1/agents", { headers: { origin: "https://evil.example" } });
  expect(called).toMatchObject({ status: 403, body: { code: "forbidden" } });
  for (const { headers } of [asked, called]) {
    expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  }
});

test("the broker's own pages and programs get no CORS headers", async () => {
  const { url } = await startBroker();
  for (const headers of [{}, { origin: url }]) {
    const answer = await request(url, "GET", "/v1/agents", { headers });
    expect(answer.status).toBe(200);
    expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  }
});
