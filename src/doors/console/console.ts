/**
 * Serves the console: one page at `/`, its service worker, and its files under `/console/`, as scripts/bundle-console.mjs
 * wrote them. They hold no data and need no token; the page calls the API with the token of whoever signs in.
 */
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { ErrandError } from "../../schema/errors.ts";
import { namesTag, weakTag } from "../http/etags.ts";
import { encodingFor } from "../http/kept-page.ts";
import type { Mount, MountedRequest } from "../http/mount.ts";
import { TextResponse } from "../http/text-response.ts";

/** Where the build puts the files: for the program, and for the sources (`npm run dev`, tests). */
const FOLDERS = [
  new URL("../../console/", import.meta.url),
  new URL("../../../dist/console/", import.meta.url),
];

/**
 * Nothing from elsewhere, nothing inline, no frame around it, and no text that becomes a script. The only Trusted
 * Types policies are DOMPurify's, which parses formatted text with it, and the default one, which admits the addresses of
 * the worker that formats it and of the service worker.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "worker-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types dompurify default",
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  vary: "Accept-Encoding, Origin",
};

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The endings of the compressed files. */
const ENDINGS = { br: ".br", gzip: ".gz" } as const;

/** A file's name contains a hash of its content. */
const FILE = /^[a-z0-9-]+-[A-Z0-9]{8}\.(?:css|js|svg)$/;

/** The first of the folders that has a file serves it. */
export const consoleRoutes = (folders: readonly URL[] = FOLDERS): readonly Mount[] => [
  { methods: ["GET"], path: "/", handle: (request) => page(folders, "index.html", request) },
  // The secret is in the fragment, which is not sent; so this does nothing, whoever follows the link.
  { methods: ["GET"], path: "/answer", handle: (request) => page(folders, "answer.html", request) },
  { methods: ["GET"], path: "/console/*", handle: (request) => file(folders, request) },
  // Its place decides for which pages it works: those beside it and below.
  { methods: ["GET"], path: "/sw.js", handle: (request) => serviceWorker(folders, request) },
];

async function page(folders: readonly URL[], name: string, request: MountedRequest): Promise<TextResponse> {
  const found = await read(folders, name, request);
  if (found === null) {
    throw new ErrandError("not_found", "The console is not built.", {
      recovery: "Run 'npm run build' in the broker's folder, then reload the page. The API works without it.",
    });
  }
  return found;
}

const NO_FILE = { recovery: "Reload the page: the broker may have another version now." };

async function serviceWorker(folders: readonly URL[], request: MountedRequest): Promise<TextResponse> {
  const found = await read(folders, "sw.js", request);
  if (found !== null) return found;
  throw new ErrandError("not_found", "The console has no service worker.", NO_FILE);
}

async function file(folders: readonly URL[], request: MountedRequest): Promise<TextResponse> {
  const found = FILE.test(request.rest) ? await read(folders, request.rest, request) : null;
  if (found !== null) return found;
  throw new ErrandError("not_found", "The console has no such file.", NO_FILE);
}

async function read(
  folders: readonly URL[],
  name: string,
  request: MountedRequest,
): Promise<TextResponse | null> {
  const encoding = encodingFor(request.header("accept-encoding"));
  for (const folder of folders) {
    const content = await contentOf(folder, name, encoding);
    if (content === null) continue;
    const tag = weakTag(content);
    const headers = {
      ...HEADERS,
      "content-type": TYPES[extname(name)] ?? "application/octet-stream",
      ...(name === "answer.html" && { "x-robots-tag": "noindex" }),
      "cache-control": FILE.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
      etag: tag,
    };
    if (namesTag(request.header("if-none-match"), tag)) return new TextResponse(304, null, headers);
    return new TextResponse(200, content, { ...headers, ...(encoding && { "content-encoding": encoding }) });
  }
  return null;
}

async function contentOf(
  folder: URL,
  name: string,
  encoding: keyof typeof ENDINGS | undefined,
): Promise<Buffer | null> {
  const bytesOf = (file: string) => readFile(new URL(file, folder)).catch(() => null);
  const content = await bytesOf(encoding ? name + ENDINGS[encoding] : name);
  if (content !== null || encoding) return content;
  // The package has scripts and styles only compressed; few clients want them plain.
  const compressed = await bytesOf(name + ENDINGS.gzip);
  return compressed && promisify(gunzip)(compressed);
}
