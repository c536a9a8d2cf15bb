/**
 * Calls a bucket: signs, bounds the time, and retries what may pass. The endpoint is the operator's own, from the settings
 * and not from a client, so the guard of outgoing calls (egress.ts) does not apply, nor does its proxy. No error has more of
 * an answer than its status and its code.
 */
import { Readable } from "node:stream";
import { AwsV4Signer } from "aws4fetch";
import { Agent, type Dispatcher, request } from "undici";
import { backoffMs, sleep } from "../../../util/timing.ts";
import type { ByteRange } from "../store.ts";
import { type ObjectPage, parsePage, textIn } from "./object-list.ts";
import { bucketUrl, type S3Credentials, type S3Place } from "./place.ts";

const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const MAX_ERROR_BYTES = 65_536;
/** A page of 1000 keys has some hundred kilobytes. */
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const LONGEST_PAUSE_MS = 2_000;
/** Too many requests; a server that lost the body; a request whose time limit at the server is over. */
const PASSING = ["SlowDown", "TooManyRequests", "RequestTimeout", "IncompleteBody", "OperationAborted"];

export interface S3ClientOptions {
  /** Until the answer begins, and between two parts of it. */
  readonly timeoutMs?: number;
  readonly attempts?: number;
}

export interface S3Body {
  readonly blocks: Uint8Array[];
  readonly size: number;
  readonly sha256: string;
}

interface Call {
  readonly method: "GET" | "PUT" | "DELETE";
  /** Empty: the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: S3Body;
  readonly signal?: AbortSignal;
}

/** The bucket refused a call, or did not answer. */
export class S3Error extends Error {
  override readonly name = "S3Error";
  /** Null if there was no answer. */
  readonly status: number | null;
  readonly code: string;
  /** The bucket, or the disk behind it, is full. */
  readonly isFull: boolean;

  constructor(status: number | null, code: string, isFull = false) {
    super(status === null ? `the bucket does not answer (${code})` : `the bucket answered ${status} ${code}`);
    this.status = status;
    this.code = code;
    this.isFull = isFull;
  }

  /** The same call may succeed soon. */
  get isPassing(): boolean {
    if (this.isFull) return false;
    return this.status === null || this.status >= 500 || this.status === 429 || PASSING.includes(this.code);
  }
}

export class S3Client {
  readonly #url: string;
  readonly #region: string;
  readonly #credentials: S3Credentials;
  readonly #agent: Agent;
  readonly #attempts: number;
  /** The signing keys of the day, by what they are made of. */
  #keys = new Map<string, ArrayBuffer>();

  constructor(
    place: S3Place,
    credentials: S3Credentials,
    { timeoutMs = 30_000, attempts = 4 }: S3ClientOptions = {},
  ) {
    this.#url = bucketUrl(place);
    this.#region = place.region;
    this.#credentials = credentials;
    this.#attempts = attempts;
    const connect = { timeout: Math.min(timeoutMs, 5_000) };
    this.#agent = new Agent({ connect, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  }

  /** Takes the blocks of the body. Throws {@link S3Error}. */
  async put(key: string, body: S3Body): Promise<void> {
    try {
      await this.#call({ method: "PUT", key, body }, (answer) => answer.body.dump());
    } finally {
      // A connection keeps its last request.
      body.blocks.length = 0;
    }
  }

  /** The bytes from the first to the last one. The caller reads them, or destroys the stream. */
  async get(key: string, { first, last }: ByteRange, signal: AbortSignal): Promise<Readable> {
    const headers = { range: `bytes=${first}-${last}` };
    return this.#call({ method: "GET", key, headers, signal }, async (answer) => {
      // A body that is destroyed unread says so.
      const body = answer.body.on("error", () => {});
      const sent = String(answer.headers["content-range"]);
      if (answer.statusCode === 206 && sent.startsWith(`bytes ${first}-${last}/`)) return body;
      body.destroy();
      throw new S3Error(answer.statusCode, "WrongRange");
    });
  }

  async delete(key: string): Promise<void> {
    await this.#call({ method: "DELETE", key }, (answer) => answer.body.dump());
  }

  /** One page of the objects whose keys begin so. */
  async list(prefix: string, token: string | null, most = 1_000): Promise<ObjectPage> {
    const query = {
      "list-type": "2",
      prefix,
      "max-keys": String(most),
      ...(token !== null && { "continuation-token": token }),
    };
    const text = await this.#call({ method: "GET", key: "", query }, (answer) =>
      textOf(answer, MAX_LIST_BYTES),
    );
    return parsePage(text);
  }

  async #call<T>(call: Call, read: (answer: Dispatcher.ResponseData) => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await read(await this.#send(call));
      } catch (error) {
        const isLast = failures + 1 >= this.#attempts || call.signal?.aborted === true;
        if (isLast || !(error instanceof S3Error) || !error.isPassing) throw error;
      }
      await sleep(backoffMs(failures, 0, LONGEST_PAUSE_MS), call.signal);
    }
  }

  async #send({
    method,
    key,
    query = {},
    headers = {},
    body,
    signal,
  }: Call): Promise<Dispatcher.ResponseData> {
    const url = new URL(key === "" ? this.#url : `${this.#url}/${key}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // Once a day the keys are others.
    if (this.#keys.size > 1) this.#keys = new Map();
    const signed = await new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, "x-amz-content-sha256": body?.sha256 ?? EMPTY_SHA256 },
      ...this.#signing(),
    }).sign();
    let answer: Dispatcher.ResponseData;
    try {
      answer = await request(signed.url, {
        method,
        dispatcher: this.#agent,
        headers: {
          ...Object.fromEntries(signed.headers),
          ...(body && { "content-length": String(body.size) }),
        },
        ...(body && { body: Readable.from(body.blocks, { objectMode: false }) }),
        ...(signal && { signal }),
      });
    } catch (error) {
      throw unanswered(error);
    }
    if (answer.statusCode < 300) return answer;
    throw await refusal(answer);
  }

  #signing() {
    const { accessKeyId, secretAccessKey, sessionToken } = this.#credentials;
    const keys = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
    return { ...keys, service: "s3", region: this.#region, cache: this.#keys };
  }
}

/** For what undici throws, also while a body is read. Only its code: a message may quote the request. */
export function unanswered(error: unknown): S3Error {
  for (let at = error; at instanceof Error; at = at.cause) {
    // Of a host with several addresses, that of the first.
    const one: unknown = at instanceof AggregateError ? at.errors[0] : at;
    if (one instanceof Error && "code" in one && typeof one.code === "string")
      return new S3Error(null, one.code);
  }
  return new S3Error(null, "no answer");
}

async function refusal(answer: Dispatcher.ResponseData): Promise<S3Error> {
  const text = await textOf(answer, MAX_ERROR_BYTES).catch(() => "");
  const [code = ""] = /^[A-Za-z0-9.]{1,80}$/.exec(textIn(text, "Code")) ?? [];
  // Garage has no code of its own for it.
  const isFull =
    answer.statusCode === 507 ||
    /quota|storagefull/i.test(code) ||
    /quota is reached/i.test(textIn(text, "Message"));
  return new S3Error(answer.statusCode, code, isFull);
}

async function textOf({ body }: Dispatcher.ResponseData, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      if (!Buffer.isBuffer(chunk)) continue;
      size += chunk.length;
      if (size > mostBytes) throw new Error("the answer of the bucket is too large");
      chunks.push(chunk);
    }
  } catch (error) {
    throw size > mostBytes ? error : unanswered(error);
  }
  return Buffer.concat(chunks).toString();
}
