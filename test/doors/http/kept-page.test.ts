/** Pages that anybody may ask for: rendered and compressed once, and not sent again to a client that has them. */
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { encodingFor, KeptPage } from "../../../src/doors/http/kept-page.ts";
import { startBroker } from "../../support/broker.ts";

test.each([
  [undefined, undefined],
  ["", undefined],
  ["gzip, deflate, br", "br"],
  ["GZIP", "gzip"],
  ["br;q=0, gzip;q=0.5", "gzip"],
  ["br;q=0.0,gzip; q=0", undefined],
  ["*", undefined],
])("Accept-Encoding %s gets %s", (header, encoding) => {
  expect(encodingFor(header)).toBe(encoding);
});

test("a page is encoded once, and its bytes are shared", () => {
  const page = new KeptPage("ä".repeat(1_000), { "content-type": "text/plain" });
  const get = (headers: Record<string, string>) => page.respond((name) => headers[name]);
  const zipped = get({ "accept-encoding": "gzip" });
  expect(get({ "accept-encoding": "gzip" }).bytes).toBe(zipped.bytes);
  expect(get({}).bytes).toBe(get({}).bytes);
  expect(gunzipSync(zipped.bytes ?? "").toString()).toBe("ä".repeat(1_000));
  expect(brotliDecompressSync(get({ "accept-encoding": "br" }).bytes ?? "").toString()).toBe(
    "ä".repeat(1_000),
  );
  const { etag = "" } = zipped.headers;
  expect(get({ "if-none-match": `"x", ${etag}` })).toMatchObject({ status: 304, text: null, bytes: null });
  expect(get({ "if-none-match": '"x"' }).status).toBe(200);
});

test.each(["/docs", "/openapi.json", "/"])("%s is sent compressed, and once", async (path) => {
  const { url } = await startBroker();
  const first = await fetch(url + path, { headers: { "accept-encoding": "gzip, br" } });
  const text = await first.text();
  const etag = first.headers.get("etag") ?? "";
  expect([first.status, first.headers.get("content-encoding"), etag]).toEqual([
    200,
    "br",
    expect.any(String),
  ]);
  expect(first.headers.get("cache-control")).toBe("no-cache");
  const plain = await fetch(url + path, { headers: { "accept-encoding": "identity" } });
  expect([plain.headers.get("content-encoding"), await plain.text()]).toEqual([null, text]);
  const again = await fetch(url + path, {
    headers: { "if-none-match": etag, "accept-encoding": "gzip, br" },
  });
  expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
  const head = await fetch(url + path, { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});
