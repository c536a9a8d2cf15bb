/**
 * A response whose text or bytes are ready. It is written to Node's socket, without the cost of a web Response. Limit: no streams;
 * stream.ts writes those.
 */
import type { ServerResponse } from "node:http";
import { CHUNK_BYTES, type Outflow } from "./outflow.ts";

export class TextResponse {
  readonly status: number;
  /** Null: no text. */
  readonly text: string | null;
  /** A body that is bytes already; they may be shared by many responses. */
  readonly bytes: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;

  /** A null body: none. */
  constructor(status: number, body: string | Buffer | null, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.text = typeof body === "string" ? body : null;
    this.bytes = typeof body === "string" ? null : body;
    this.headers = headers;
  }

  /** `common` are the headers of every response. A large response is sent through `outflow` and counts for `owner`. */
  writeTo(
    outgoing: ServerResponse,
    common: Readonly<Record<string, string>>,
    outflow: Outflow,
    owner: () => string,
  ): void {
    const { status, text, bytes: ready, headers } = this;
    if (ready !== null) {
      outgoing.writeHead(status, { "content-length": String(ready.length), ...common, ...headers });
      if (ready.length <= CHUNK_BYTES) outgoing.end(ready);
      else outflow.send(outgoing, ready, owner());
      return;
    }
    if (text === null) {
      outgoing.writeHead(status, { ...common, ...headers }).end();
      return;
    }
    const bytes = Buffer.byteLength(text);
    // For UTF-8, Node allocates three bytes per character; ASCII does not need them.
    const encoding = bytes === text.length ? "latin1" : "utf8";
    outgoing.writeHead(status, {
      "content-type": "application/json",
      "content-length": String(bytes),
      ...common,
      ...headers,
    });
    if (bytes <= CHUNK_BYTES) outgoing.end(text, encoding);
    else outflow.send(outgoing, Buffer.from(text, encoding), owner());
  }
}

/** Converts a web Response with a text body; returns a stream, or a Response without a body, unchanged. */
export async function withText(response: Response): Promise<TextResponse | Response> {
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || /^text\/event-stream/i.test(type)) return response;
  return new TextResponse(response.status, await response.text(), Object.fromEntries(response.headers));
}

/** For JSON that is already text. */
export const jsonText = (status: number, text: string, headers?: Record<string, string>): TextResponse =>
  new TextResponse(status, text, headers);

export const json = (status: number, value: unknown, headers?: Record<string, string>): TextResponse =>
  jsonText(status, JSON.stringify(value), headers);

export const noContent = (headers?: Record<string, string>): TextResponse =>
  new TextResponse(204, null, headers);
