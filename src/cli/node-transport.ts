/**
 * Sends calls by Node's own HTTP, because loading fetch takes longer than most commands run. Failures have the codes of
 * fetch, so that messages are the same. What goes through a forward proxy, or to a port that fetch refuses, is left to it.
 */
import type * as Http from "node:http";
import type { Readable } from "node:stream";
import { hasProxyVariable } from "../client/environment.ts";
import { environmentFetch } from "../client/environment-fetch.ts";
import type { HttpRequest, HttpResponse, Transport } from "../client/transport.ts";
import type { ByteStream } from "../util/text.ts";
import { onAbort } from "../util/timing.ts";

/** An import would load fetch, too, on Node 22 and newer: the module also has WebSocket. */
const http = process.getBuiltinModule("node:http");

/** As long as fetch waits for a connection. */
const CONNECT_MS = 10_000;

/** As long as fetch keeps an idle connection. Servers close them after 5 seconds or more: Node's own 5 would be a race. */
const IDLE_MS = 4_000;

/** Of other protocols: https://fetch.spec.whatwg.org/#port-blocking */
const REFUSED_PORTS = new Set(
  `1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137
  139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720
  1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080`.split(/\s+/),
);

export function nodeTransport(connectMs = CONNECT_MS): Transport {
  const plain = plainCaller();
  let secure: Promise<Caller> | undefined;
  const callerFor = ({ protocol }: URL): Caller | Promise<Caller> => {
    if (protocol !== "https:") return plain;
    secure ??= secureCaller();
    return secure;
  };
  return async (url, request) => {
    if (REFUSED_PORTS.has(url.port) || (await isProxied(url))) return environmentFetch(url, request);
    try {
      const message = await answerTo(url, request, connectMs, await callerFor(url));
      return new NodeResponse(message, await decoded(message));
    } catch (error) {
      throw named(error);
    }
  };
}

/** With the connections that it keeps. */
interface Caller {
  readonly request: typeof Http.request;
  readonly agent: Http.Agent;
}

const plainCaller = (): Caller => ({
  request: http.request,
  agent: new http.Agent({ keepAlive: true, timeout: IDLE_MS }),
});

async function secureCaller(): Promise<Caller> {
  const { request, Agent, globalAgent } = await import("node:https");
  return { request, agent: new Agent({ ...globalAgent.options, keepAlive: true, timeout: IDLE_MS }) };
}

const isProxied = async (url: URL): Promise<boolean> =>
  hasProxyVariable() && (await import("../client/proxied-fetch.ts")).proxyFor(url.href) !== null;

async function answerTo(
  url: URL,
  { method, headers, body, signal }: HttpRequest,
  connectMs: number,
  { request, agent }: Caller,
): Promise<Http.IncomingMessage> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      agent,
      headers: {
        "user-agent": "node",
        "accept-encoding": "gzip",
        // Node leaves it out for a DELETE.
        ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
        ...headers,
      },
    });
    let answer: Http.IncomingMessage | undefined;
    const fail = (error: unknown) => {
      const failure = error instanceof Error ? error : new Error(String(error));
      // First of all, because Node takes an end of the connection for the end of a body without a length.
      answer?.destroy(failure);
      sent.destroy(failure);
      reject(failure);
    };
    const unsubscribe = onAbort(signal, () => fail(signal.reason));
    sent.on("close", unsubscribe);
    sent.on("error", fail);
    sent.on("response", (message) => {
      // Thrown where the body is read, which may be later.
      message.on("error", () => undefined);
      answer = message;
      resolve(message);
    });
    whenConnected(sent, connectMs, () => sent.end(body));
  });
}

/** Nothing is sent before, or TLS would fail with another error. The system itself waits for minutes. */
function whenConnected(sent: Http.ClientRequest, ms: number, send: () => void): void {
  sent.once("socket", (socket) => {
    if (sent.reusedSocket) return send();
    const late = () => sent.destroy(coded("the connection takes too long", "UND_ERR_CONNECT_TIMEOUT"));
    const timer = setTimeout(late, ms);
    socket.once("close", () => clearTimeout(timer));
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => {
      clearTimeout(timer);
      send();
    });
  });
}

/** Only a server in front of the broker compresses. */
async function decoded(message: Http.IncomingMessage): Promise<Readable> {
  if (message.statusCode === 407) {
    message.destroy();
    // fetch, too, gives no reason.
    throw new Error("");
  }
  if (!/^(?:x-)?gzip$/i.test(message.headers["content-encoding"] ?? "")) return message;
  const [{ constants, createGunzip }, { pipeline }] = await Promise.all([
    import("node:zlib"),
    import("node:stream"),
  ]);
  // As fetch: an answer without a body may have the header, too.
  const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
  return pipeline(message, createGunzip(lenient), () => undefined);
}

class NodeResponse implements HttpResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: HttpResponse["headers"];
  readonly body: ByteStream;
  readonly #bytes: Readable;

  constructor({ statusCode = 0, headers }: Http.IncomingMessage, bytes: Readable) {
    this.status = statusCode;
    this.ok = statusCode >= 200 && statusCode < 300;
    this.headers = { get: (name) => headers[name]?.toString() ?? null };
    this.body = { getReader: () => readerOf(bytes) };
    this.#bytes = bytes;
  }

  async text(): Promise<string> {
    const reader = readerOf(this.#bytes);
    const pieces: Uint8Array[] = [];
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
    return new TextDecoder().decode(Buffer.concat(pieces));
  }
}

function readerOf(bytes: Readable): ReturnType<ByteStream["getReader"]> {
  const pieces: AsyncIterator<Uint8Array, undefined> = bytes[Symbol.asyncIterator]();
  return {
    read: () =>
      pieces.next().catch((error: unknown) => {
        throw named(error);
      }),
    cancel: async () => void bytes.destroy(),
  };
}

/** Node's code → that of fetch. */
const NAMES: Readonly<Record<string, string>> = {
  ECONNRESET: "UND_ERR_SOCKET",
  ERR_STREAM_PREMATURE_CLOSE: "UND_ERR_SOCKET",
  HPE_HEADER_OVERFLOW: "UND_ERR_HEADERS_OVERFLOW",
};

function named(error: unknown): unknown {
  // That of the system has the same name for both.
  if (!(error instanceof Error && "code" in error) || "syscall" in error) return error;
  const name = NAMES[String(error.code)];
  return name === undefined ? error : coded(error.message, name, error);
}

const coded = (message: string, code: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code });
