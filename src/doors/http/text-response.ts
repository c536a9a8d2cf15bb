/**
 * An answer whose text is ready: written to the socket as it is, past the web's response objects, which cost more than
 * all of it. Limit: JSON and empty answers; streams go the usual way.
 */
import type { ServerResponse } from "node:http";
import { CHUNK_BYTES, type Outflow } from "./outflow.ts";

export class TextResponse {
  readonly status: number;
  /** Null: an answer without a body. */
  readonly text: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, text: string | null, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.text = text;
    this.headers = headers;
  }

  /** `common` are headers of every answer. A large answer is sent through `outflow` and counts for `owner`. */
  writeTo(
    outgoing: ServerResponse,
    common: Readonly<Record<string, string>>,
    outflow: Outflow,
    owner: () => string,
  ): void {
    const { status, text, headers } = this;
    if (text === null) {
      outgoing.writeHead(status, { ...common, ...headers }).end();
      return;
    }
    const bytes = Buffer.byteLength(text);
    // Plain ASCII needs no room for longer characters: Node takes three bytes for each of a UTF-8 text.
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

/** A web Response with a text body as an Answer; a stream, or a Response without a body, is returned as it is. */
export async function withText(response: Response): Promise<TextResponse | Response> {
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || /^text\/event-stream/i.test(type)) return response;
  return new TextResponse(response.status, await response.text(), Object.fromEntries(response.headers));
}

/** JSON text that is ready to go. */
export const jsonText = (status: number, text: string, headers?: Record<string, string>): TextResponse =>
  new TextResponse(status, text, headers);

export const json = (status: number, value: unknown, headers?: Record<string, string>): TextResponse =>
  jsonText(status, JSON.stringify(value), headers);

export const noContent = (): TextResponse => new TextResponse(204, null);
