/** How the gateway serves the console's files. Needs a build. */
import { IncomingMessage, ServerResponse, request as send } from "node:http";
import { Socket } from "node:net";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { consoleRoutes } from "../../src/doors/console/console.ts";
import type { MountedRequest } from "../../src/doors/http/mount.ts";
import { startBroker } from "../support/broker.ts";

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Buffer;
}

/** As sent on the wire: fetch would unpack it. */
function get(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = send(url, { headers, method }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    call.on("error", reject);
    call.end();
  });
}

const filesIn = (html: string): string[] =>
  [...html.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, to = ""]) => to);

test("GET / is the page, without a token, under a strict policy and never from a stale cache", async () => {
  const { url } = await startBroker({ allowedOrigins: ["https://ops.example"] });
  const { status, headers, body } = await get(`${url}/`);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    vary: "Accept-Encoding, Origin",
  });
  const policy = String(headers["content-security-policy"]);
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "worker-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types dompurify default",
  ])
    expect(policy.split("; ")).toContain(rule);
  expect(policy).not.toMatch(/unsafe|data:|\*/);
  const html = body.toString();
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style| style=| on[a-z]+=|https?:/);
  expect(filesIn(html).length).toBeGreaterThanOrEqual(3);
  const head = await get(`${url}/`, {}, "HEAD");
  expect([head.status, head.body.length]).toEqual([200, 0]);
});

test("the page's files are compressed, and kept by browsers for good", async () => {
  const { url } = await startBroker();
  const files = filesIn((await get(`${url}/`)).body.toString());
  for (const file of files) {
    const plain = await get(`${url}/${file}`);
    expect(plain.headers["cache-control"], file).toBe("public, max-age=31536000, immutable");
    expect(plain.headers["content-encoding"]).toBeUndefined();
    const zipped = await get(`${url}/${file}`, { "accept-encoding": "gzip, br;q=0" });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true);
    const small = await get(`${url}/${file}`, { "accept-encoding": "gzip, deflate, br" });
    expect(small.headers["content-encoding"]).toBe("br");
    expect(brotliDecompressSync(small.body).equals(plain.body)).toBe(true);
    expect(Number(small.headers["content-length"])).toBe(small.body.length);
  }
});

test("other paths are not found, whatever they climb to", async () => {
  const { url } = await startBroker();
  for (const path of [
    "console/index.html",
    "console/../index.js",
    "console/%2e%2e/index.js",
    "console/..%2findex.js",
    "console/console-AAAAAAAA.js",
    "console/console-AAAAAAAA.js.gz",
    "console/",
  ]) {
    const { status, headers } = await get(`${url}/${path}`);
    expect([path, status, headers["content-type"]]).toEqual([path, 404, "application/problem+json"]);
  }
});

test("without the built files, GET / says what to do", async () => {
  const [page] = consoleRoutes([new URL("file:///nowhere/")]);
  const incoming = new IncomingMessage(new Socket());
  const request: MountedRequest = {
    requestId: "req_1",
    method: "GET",
    header: () => undefined,
    incoming,
    outgoing: new ServerResponse(incoming),
    params: {},
    rest: "",
    query: {},
    authenticate: () => Promise.reject(new Error("not called")),
  };
  await expect(page?.handle(request)).rejects.toMatchObject({
    code: "not_found",
    message: "The console is not built.",
    context: { recovery: expect.stringContaining("npm run build") },
  });
});
