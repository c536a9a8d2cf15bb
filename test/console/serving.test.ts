/** How the gateway serves the console's files. Needs a build. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse, request as send } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { consoleRoutes } from "../../src/doors/console/console.ts";
import type { MountedRequest } from "../../src/doors/http/mount.ts";
import { TextResponse } from "../../src/doors/http/text-response.ts";
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

test("the service worker is at one address, from which a browser takes each new version", async () => {
  const { url } = await startBroker();
  const { status, headers, body } = await get(`${url}/sw.js`, { "accept-encoding": "br" });
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "cache-control": "no-cache",
    "content-encoding": "br",
    "content-security-policy": expect.stringContaining("connect-src 'self'"),
  });
  // As a classic script, and alone: each import would be one more thing to keep.
  expect(brotliDecompressSync(body).toString()).not.toMatch(/\b(?:import|export|importScripts)\b/);
  const again = await get(`${url}/sw.js`, {
    "accept-encoding": "br",
    "if-none-match": String(headers.etag),
  });
  expect(again.status).toBe(304);
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

/** A request for a file, from a client that accepts no compression. */
function requestFor(rest: string): MountedRequest {
  const incoming = new IncomingMessage(new Socket());
  return {
    requestId: "req_1",
    method: "GET",
    header: () => undefined,
    incoming,
    outgoing: new ServerResponse(incoming),
    params: {},
    rest,
    query: {},
    authenticate: () => Promise.reject(new Error("not called")),
  };
}

test("without the built files, GET / says what to do", async () => {
  const [page] = consoleRoutes([new URL("file:///nowhere/")]);
  await expect(page?.handle(requestFor(""))).rejects.toMatchObject({
    code: "not_found",
    message: "The console is not built.",
    context: { recovery: expect.stringContaining("npm run build") },
  });
});

test("of a package, which has scripts only compressed, clients get them plain, too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "errand-console-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "console-AAAAAAAA.js.gz"), gzipSync("let a = 1;"));
  const file = consoleRoutes([pathToFileURL(`${folder}/`)]).find(({ path }) => path === "/console/*");
  const answer = await file?.handle(requestFor("console-AAAAAAAA.js"));
  if (!(answer instanceof TextResponse)) throw new Error("no file");
  expect([answer.status, answer.bytes?.toString()]).toEqual([200, "let a = 1;"]);
  expect(answer.headers["content-encoding"]).toBeUndefined();
});
