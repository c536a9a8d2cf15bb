/** CR, LF and NUL in everything that becomes a header, a field of an event stream, a key or a cursor. */
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { dump } from "../../support/dump.ts";

const BREAKS = { CRLF: "\r\n", CR: "\r", LF: "\n", NUL: "\0" };
const ID = `dlg_0_${"0".repeat(26)}`;

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  return { ...broker, api };
}

type Api = ReturnType<typeof client>;
const get = (api: Api, path: string) => api.call("GET", path, undefined, { accept: "application/json" });
const inUrl = (text: string) => encodeURIComponent(text);

/** Every field of a body or a URL that has a syntax; `bad` contains the break. */
const PLACES: Record<string, (api: Api, bad: string) => Promise<{ status: number; body: { code: string } }>> =
  {
    target: (api, bad) => api.delegate(`scout${bad}`),
    context_id: (api, bad) => api.delegate("scout", { context_id: `ctx${bad}x` }),
    not_before: (api, bad) => api.delegate("scout", { not_before: `2099-01-01T00:00:00Z${bad}` }),
    worker_id: (api, bad) => api.lease("scout", { wait_seconds: 0, worker_id: `w${bad}x` }),
    "a token's principal": (api, bad) => api.call("POST", "/v1/tokens", { principal: `caller:a${bad}` }),
    accepts_from: (api, bad) => api.agent("scout", { accepts_from: [`caller:a${bad}`] }),
    "an error's code": (api, bad) =>
      api.reply(`lse_0_${"0".repeat(26)}_1`, { state: "failed", error: { code: `x${bad}`, message: "x" } }),
    "an agent in the path": (api, bad) => api.agent(inUrl(`scout${bad}`)),
    "a delegation in the path": (api, bad) => api.get(inUrl(`${ID}${bad}`)),
    "a lease in the path": (api, bad) => api.heartbeat(inUrl(`lse_0_${"0".repeat(26)}_1${bad}`)),
    types: (api, bad) => get(api, `/v1/events?types=${inUrl(`DELEGATION_SENT${bad}`)}`),
    "the filter delegator": (api, bad) => get(api, `/v1/events?delegator=${inUrl(`caller:a${bad}`)}`),
    "the filter target": (api, bad) => get(api, `/v1/events?target=${inUrl(`scout${bad}`)}`),
    "the filter context_id": (api, bad) => get(api, `/v1/events?context_id=${inUrl(`c${bad}`)}`),
    "the filter delegation_id": (api, bad) => get(api, `/v1/events?delegation_id=${inUrl(`${ID}${bad}`)}`),
    after: (api, bad) => get(api, `/v1/events?after=${inUrl(`1-0${bad}`)}`),
    "the cursor of results": (api, bad) => get(api, `/v1/results?after=${inUrl(`1-0${bad}`)}`),
  };

/** An id of a wrong form is one that does not exist. */
const REFUSALS: Record<string, readonly [number, string]> = {
  "a delegation in the path": [404, "delegation_not_found"],
  "a lease in the path": [404, "lease_unknown"],
};

test.each(Object.entries(PLACES))("a break in %s is refused and leaves no data", async (place, send) => {
  const { api, redis } = await setup();
  const before = await dump(redis);
  for (const [name, bad] of Object.entries(BREAKS)) {
    const { status, body } = await send(api, bad);
    expect([name, status, body.code]).toEqual([name, ...(REFUSALS[place] ?? [400, "invalid_request"])]);
  }
  expect(await dump(redis)).toEqual(before);
});

/** Sends a header that no HTTP library would send; returns the response as text. */
function sendRaw(url: string, [method, path, body]: readonly [string, string, string], header: string) {
  const { hostname, port } = new URL(url);
  return new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let answer = "";
    socket.setEncoding("latin1").on("data", (text) => {
      answer += text;
    });
    socket.on("error", reject).on("close", () => resolve(answer));
    const head = [
      `${method} ${path} HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${OPERATOR}`,
      "Accept: application/json",
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "Connection: close",
      header,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`, "latin1");
  });
}

describe("a header", () => {
  const DELEGATE = ["POST", "/v1/delegations", '{"target":"scout","task":"x"}'] as const;
  const WATCH = ["GET", "/v1/events", ""] as const;
  const HEADERS = {
    "Idempotency-Key": [DELEGATE, "key"],
    Prefer: [DELEGATE, "wait=0"],
    traceparent: [DELEGATE, `00-${"a".repeat(32)}-${"b".repeat(16)}-01`],
    "Last-Event-ID": [WATCH, "1-0"],
    Authorization: [WATCH, `Bearer ${OPERATOR}`],
  } as const;

  test.each(Object.entries(HEADERS))(
    "%s with a bare CR, LF or NUL is refused and leaves no data",
    async (name, [what, value]) => {
      const { url, redis } = await setup();
      const before = await dump(redis);
      for (const bad of ["\r", "\n", "\0"]) {
        expect(await sendRaw(url, what, `${name}: ${value}${bad}x`)).toMatch(/^HTTP\/1\.1 400 /);
      }
      expect(await dump(redis)).toEqual(before);
    },
  );

  // HTTP itself lets the other control characters through.
  test.each(["\t", "\x80", "\xff"])(
    "with %j in the middle is refused by the routes that use it",
    async (odd) => {
      const { url, redis } = await setup();
      const before = await dump(redis);
      for (const name of ["Idempotency-Key", "Last-Event-ID"] as const) {
        const [what, value] = HEADERS[name];
        const answer = await sendRaw(url, what, `${name}: ${value}${odd}x`);
        expect(answer).toMatch(/^HTTP\/1\.1 400 /);
        expect(answer).toContain('"code":"invalid_request"');
      }
      expect(await dump(redis)).toEqual(before);
    },
  );

  test("malformed Prefer and traceparent headers are ignored", async () => {
    const { url, api } = await setup();
    const [what, value] = HEADERS.traceparent;
    expect(await sendRaw(url, what, `Prefer: wait=\x80\r\ntraceparent: ${value}\xff`)).toMatch(
      /^HTTP\/1\.1 202 /,
    );
    const [lease] = (await api.lease("scout")).body.leases;
    expect(lease).not.toHaveProperty("traceparent");
  });
});

test("no text in an event can forge another event in a stream", async () => {
  const { api, url } = await setup();
  const text = Object.values(BREAKS)
    .map((one) => `x${one}event: FORGED${one}data: {}${one}${one}`)
    .join("");
  const work = async () => String((await api.lease("scout")).body.leases[0].lease_id);
  const { id } = (await api.delegate("scout", { task: text, metadata: { [text]: text } })).body;
  const first = await work();
  await api.heartbeat(first, { progress: { message: text, current_step: text, tools_used: [text] } });
  const artifact = { artifactId: "a", name: text, parts: [{ text }], metadata: { [text]: text } };
  await api.call("POST", `/v1/leases/${first}/artifacts`, { artifact });
  await api.release(first, { reason: text });
  const snapshot = await streamed(`${url}/v1/delegations/${id}/events`, 1);
  expect(snapshot).toEqual(["DELEGATION_SNAPSHOT"]);
  await api.reply(await work(), { state: "failed", text, error: { code: "x", message: text } });
  const other = (await api.delegate("scout", { task: text })).body.id;
  await api.cancel(other, { reason: text });

  for (const [one, count] of [
    [id, 7],
    [other, 2],
  ] as const) {
    const { events } = (await api.events(one)).body;
    expect(events).toHaveLength(count);
    expect(JSON.stringify(events)).toContain(JSON.stringify(text).slice(1, -1));
    const types = events.map(({ type }: { type: string }) => type);
    expect(await streamed(`${url}/v1/delegations/${one}/events?after=0`, count)).toEqual(types);
  }
});

/** The types of the first events of a stream; checks that each of its lines is one of ours. */
async function streamed(url: string, count: number): Promise<string[]> {
  const leave = new AbortController();
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${OPERATOR}`, accept: "text/event-stream" },
    signal: leave.signal,
  });
  let text = "";
  const decoder = new TextDecoder();
  const ends = () => text.split("\n\n").length - 1;
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (ends() >= count) break;
  }
  leave.abort();
  const lines = text.split(/\r\n|\r|\n/);
  const ours = /^(?:retry: \d+|id: [\d.-]+|event: [A-Z_]+|data: \{[^\0]*\}|)$/;
  expect(lines.filter((line) => !ours.test(line))).toEqual([]);
  return lines.flatMap((line) => /^event: (?!CURSOR$)(.*)$/.exec(line)?.[1] ?? []);
}
