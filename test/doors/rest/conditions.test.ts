/** If-Match and If-None-Match on an agent, by every verb: a condition that fails changes nothing, a 304 hides nothing. */
import { describe, expect, test } from "vitest";
import { ROUTES } from "../../../src/doors/http/app.ts";
import { hasAnyTag, hasStrongTag } from "../../../src/util/entity-tags.ts";
import { client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { dump } from "../../support/dump.ts";
import { until } from "../../support/until.ts";

const PATH = "/v1/agents/scout";

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const get = (headers: Record<string, string> = {}) =>
    fetch(broker.url + PATH, { headers: { authorization: `Bearer ${OPERATOR}`, ...headers } });
  const tag = async () => (await get()).headers.get("etag") ?? "";
  return { ...broker, api, get, tag };
}

const CHANGES: readonly [method: string, path: string, body?: object][] = [
  ["PUT", PATH, { description: "new" }],
  ["PATCH", PATH, { description: "new" }],
  ["POST", `${PATH}/pause`],
  ["POST", `${PATH}/resume`],
  ["DELETE", PATH],
];

test("every route of an agent that has a tag says which conditions it honours", () => {
  const routes = ROUTES.filter(({ path }) => /\{agent\}(?:$|\/(?:pause|resume)$)/.test(path));
  expect(routes).toHaveLength(CHANGES.length + 1);
  for (const { notes } of routes) expect(notes?.requestHeaders).toEqual(["If-Match", "If-None-Match"]);
});

test.each(CHANGES)("%s %s happens only under its conditions", async (method, path, body) => {
  const { url, redis, api, tag } = await setup();
  const send = (headers: Record<string, string>) =>
    request(url, method, path, { headers, ...(body && { body }) });
  const old = await tag();
  await api.call("POST", `${PATH}/pause`);
  const current = await tag();
  expect(current).not.toBe(old);
  const before = await dump(redis);
  const version = current.slice(1).split(".")[0];
  for (const headers of [
    { "if-match": '"nope"' },
    { "if-match": old },
    { "if-match": `W/${current}` },
    { "if-match": `"x", W/${current}, ${old}` },
    { "if-match": `"a,${version}"` },
    { "if-match": "" },
    { "if-none-match": "*" },
    { "if-none-match": current },
    { "if-none-match": `"x", W/${current}` },
    { "if-match": current, "if-none-match": current },
  ]) {
    const answer = await send(headers);
    expect([headers, answer.status, answer.body?.code]).toEqual([headers, 412, "precondition_failed"]);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect([headers, await tag()]).toEqual([headers, current]);
  }
  expect(await dump(redis)).toEqual(before);
  expect((await send({ "if-match": `"x", ${current}`, "if-none-match": `"y", ${old}` })).status).toBeLessThan(
    300,
  );
});

describe("reading", () => {
  test("is 304 while the whole answer is the same", async () => {
    const { get, tag } = await setup();
    const current = await tag();
    for (const tags of [current, `W/${current}`, `"x", ${current}`, "*"]) {
      const answer = await get({ "if-none-match": tags });
      expect([tags, answer.status, await answer.text()]).toEqual([tags, 304, ""]);
      expect(answer.headers.get("etag")).toBe(current);
    }
    expect((await get({ "if-none-match": current.replace(/\..*/, '"') })).status).toBe(200);
    expect((await get({ "if-match": '"nope"' })).status).toBe(412);
    expect((await get({ "if-match": current })).status).toBe(200);
  });

  test.each<[what: string, change: (api: ReturnType<typeof client>) => Promise<unknown>]>([
    ["its counts", (api) => api.delegate("scout")],
    ["its presence", (api) => api.lease("scout")],
    ["paused", (api) => api.call("POST", `${PATH}/pause`)],
    ["a setting", (api) => api.call("PATCH", PATH, { description: "new" })],
  ])("is 200 when %s changed", async (_what, change) => {
    const { api, get, tag } = await setup();
    const etag = await tag();
    await change(api);
    // Presence is cached for a moment.
    await until(async () => (await get({ "if-none-match": etag })).status === 200);
  });

  test("a change of presence or counts fails no change of the settings", async () => {
    const { api, tag } = await setup();
    const before = await tag();
    await api.delegate("scout");
    expect(await tag()).not.toBe(before);
    expect((await api.call("PATCH", PATH, { description: "new" }, { "if-match": before })).status).toBe(200);
  });
});

test("tags in lists", () => {
  const strong = (header: string | undefined) => hasStrongTag(header, (opaque) => opaque === "a");
  const any = (header: string | undefined) => hasAnyTag(header, (opaque) => opaque === "a");
  const matching = (headers: readonly (string | undefined)[]) =>
    headers.map((header) => [header, strong(header), any(header)]);
  expect(
    matching(['"a"', 'W/"a"', ' "x" ,"a"', "*", '"a', "a", '"x,a"', '"*"', "", undefined, 'w/"a"']),
  ).toEqual([
    ['"a"', true, true],
    ['W/"a"', false, true],
    [' "x" ,"a"', true, true],
    ["*", true, true],
    ['"a', false, false],
    ["a", false, false],
    ['"x,a"', false, false],
    ['"*"', false, false],
    ["", false, false],
    [undefined, false, false],
    ['w/"a"', true, true],
  ]);
});
