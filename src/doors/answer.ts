/**
 * An answer whose text is ready: written to the socket as it is, past the web's response objects, which cost more than
 * all of it. Limit: JSON and empty answers; streams go the usual way.
 */
import type { ServerResponse } from "node:http";

export class Answer {
  readonly status: number;
  /** Null: an answer without a body. */
  readonly text: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, text: string | null, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.text = text;
    this.headers = headers;
  }

  /** `common` are headers of every answer. */
  writeTo(outgoing: ServerResponse, common: Readonly<Record<string, string>>): void {
    const { status, text, headers } = this;
    if (text === null) {
      outgoing.writeHead(status, { ...common, ...headers }).end();
      return;
    }
    const bytes = Buffer.byteLength(text);
    outgoing
      .writeHead(status, {
        "content-type": "application/json",
        "content-length": String(bytes),
        ...common,
        ...headers,
      })
      // Plain ASCII needs no room for longer characters: Node takes three bytes for each of a UTF-8 text.
      .end(text, bytes === text.length ? "latin1" : "utf8");
  }
}

/** JSON text that is ready to go. */
export const jsonText = (status: number, text: string, headers?: Record<string, string>): Answer =>
  new Answer(status, text, headers);

export const json = (status: number, value: unknown, headers?: Record<string, string>): Answer =>
  jsonText(status, JSON.stringify(value), headers);

export const nothing = (status: 204): Answer => new Answer(status, null);
