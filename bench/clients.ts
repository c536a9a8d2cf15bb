/**
 * The HTTP clients of the load, one connection and one request at a time each. `undici` and `fetch` are the ordinary
 * ones, as users have them; `bare` costs the least, so it shows what the broker can do.
 */
import { Client } from "undici";
import { type Answer, Lane, type LoadClient } from "./lane.ts";

export const CLIENTS = ["undici", "fetch", "bare"] as const;
export type ClientName = (typeof CLIENTS)[number];

export function openClient(name: ClientName, url: string, token: string): LoadClient {
  if (name === "bare") return new Lane(url, token);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return name === "undici" ? new UndiciClient(url, headers) : new FetchClient(url, headers);
}

type Headers = Readonly<Record<string, string>>;

class UndiciClient implements LoadClient {
  readonly #client: Client;
  readonly #headers: Headers;

  constructor(url: string, headers: Headers) {
    // Longer than the longest hold of a poll.
    this.#client = new Client(url, { headersTimeout: 120_000, bodyTimeout: 120_000 });
    this.#headers = headers;
  }

  async post(path: string, body: string, headers: Headers = {}): Promise<Answer> {
    const options = { path, method: "POST", headers: { ...this.#headers, ...headers }, body } as const;
    const { statusCode, body: answer } = await this.#client.request(options);
    return { status: statusCode, body: await answer.text() };
  }

  /** It connects with its first request. */
  async opened(): Promise<void> {}

  close(): void {
    void this.#client.destroy();
  }
}

class FetchClient implements LoadClient {
  readonly #url: string;
  readonly #headers: Headers;
  readonly #closing = new AbortController();

  constructor(url: string, headers: Headers) {
    this.#url = url;
    this.#headers = headers;
  }

  async post(path: string, body: string, headers: Headers = {}): Promise<Answer> {
    const answer = await fetch(`${this.#url}${path}`, {
      method: "POST",
      headers: { ...this.#headers, ...headers },
      body,
      signal: this.#closing.signal,
    });
    return { status: answer.status, body: await answer.text() };
  }

  async opened(): Promise<void> {}

  close(): void {
    this.#closing.abort();
  }
}
