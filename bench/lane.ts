/**
 * One persistent HTTP connection with one request at a time, as lean as possible, so that the broker is measured and not
 * the driver. Limit: POST only, ASCII bodies, answers with a content-length (the gateway's JSON always has one).
 */
import { connect, type Socket } from "node:net";

const HEAD_END = "\r\n\r\n";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface LoadClient {
  post(path: string, body: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Resolves once it is connected, or has failed. */
  opened(): Promise<void>;
  /** Ends a request that is under way, which then rejects. */
  close(): void;
}

export class Lane implements LoadClient {
  readonly #socket: Socket;
  readonly #head: string;
  #text = "";
  #bodyAt = -1;
  #end = 0;
  #resolve: (answer: Answer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #closed = false;

  constructor(url: string, token: string) {
    const { hostname, port, host } = new URL(url);
    this.#head =
      ` HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n` +
      "content-type: application/json\r\ncontent-length: ";
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.on("data", (chunk) => this.#read(chunk));
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.#closed = true;
      this.#reject(new Error("the connection was closed"));
    });
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** Resolves once it is connected, or has failed. */
  opened(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#socket.connecting) return resolve();
      this.#socket.once("connect", resolve);
      this.#socket.once("close", resolve);
    });
  }

  post(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new Error("the connection is closed"));
        return;
      }
      this.#resolve = resolve;
      this.#reject = reject;
      let more = "";
      for (const name in headers) more += `${name}: ${headers[name]}\r\n`;
      this.#socket.write(`POST ${path}${this.#head}${body.length}\r\n${more}\r\n${body}`, "latin1");
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#text += chunk.toString("latin1");
    if (this.#bodyAt < 0) {
      const headEnd = this.#text.indexOf(HEAD_END);
      if (headEnd < 0) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(this.#text.slice(0, headEnd))?.[1];
      if (length === undefined) {
        this.#reject(new Error(`no content-length: ${this.#text.slice(0, headEnd)}`));
        return;
      }
      this.#bodyAt = headEnd + HEAD_END.length;
      this.#end = this.#bodyAt + Number(length);
    }
    if (this.#text.length < this.#end) return;
    const answer = {
      status: Number(this.#text.slice(9, 12)),
      body: this.#text.slice(this.#bodyAt, this.#end),
    };
    this.#text = "";
    this.#bodyAt = -1;
    this.#resolve(answer);
  }
}
