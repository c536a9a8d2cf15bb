/**
 * HTTP to a broker: JSON, bearer token, problem+json as ErrandApiError, repeats while the broker is away.
 * Limit: one gateway URL; redirects are not followed, so that the token goes nowhere else.
 */
import type * as z from "zod";
import { problemSchema } from "../schema/errors.ts";
import { wellFormedJson, withoutTrailingSlashes } from "../schema/text.ts";
import { backoffMs, sleep, TimeLimit } from "../util/timing.ts";
import { locate } from "./environment.ts";
import { ErrandApiError, isAway, localError } from "./errors.ts";
import { failed, invalidUrl, noAnswer, notOurs } from "./failures.ts";
import { parseLenient } from "./lenient.ts";

/** How to reach a broker, for {@link Delegator}, {@link Agent} and {@link Admin} alike. */
export interface ConnectionOptions {
  /**
   * Base URL of a gateway. Default: `ERRAND_URL` where there is an environment, else `http://127.0.0.1:4180`.
   * What is neither http nor https is thrown as `invalid_url` by the constructor.
   */
  readonly url?: string | undefined;
  /**
   * The bearer token. Default: `ERRAND_TOKEN` where there is an environment, unless `url` names another broker
   * than `ERRAND_URL` does. Without one most calls are refused (`unauthenticated`).
   */
  readonly token?: string | undefined;
  /** Instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * How long, in milliseconds from its first failure, a call is repeated while the broker is away: no answer, a
   * cut connection, 502 to 504. Only calls that are safe to repeat are. Default 30 000; 0 never repeats. Streams,
   * inboxes and agents wait out any outage.
   */
  readonly retryForMs?: number | undefined;
  /**
   * Whether to throw `unreachable` at once when nothing answers at the URL and nothing ever did. Default true: a
   * wrong URL and a broker that is not started are told in the first call. False waits for it as for one that
   * went away: for services that start in any order.
   */
  readonly failFast?: boolean | undefined;
  /** Told before each repeat, with the reason and the wait in milliseconds. */
  readonly onRetry?: ((error: ErrandApiError, delayMs: number) => void) | undefined;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Made by {@link route}. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** How long the gateway may hold the answer; the time limit starts after it. */
  readonly holdSeconds?: number;
  /** Default: the hold and 15 s. */
  readonly timeoutMs?: number;
}

/** No answer for this long beyond what it was asked to hold: the connection is dead. */
const ANSWER_MS = 15_000;

/** A path whose parts are escaped: route`/v1/agents/${name}`. */
export function route(fixed: TemplateStringsArray, ...parts: string[]): string {
  return fixed.reduce((path, piece, index) => {
    const part = parts[index - 1] ?? "";
    if (part === "" || part === "." || part === "..") {
      throw localError({
        code: "invalid_request",
        category: "PROTOCOL",
        detail: `'${part}' cannot be part of a path`,
        recovery: "Give the name or id of what you mean.",
      });
    }
    return path + encodeURIComponent(part) + piece;
  });
}

/** Seconds as a query string takes them: no exponent. */
export function seconds(value: number): string {
  return String(Number(value.toFixed(3)));
}

export class Http {
  readonly url: string;
  readonly onRetry: ConnectionOptions["onRetry"];
  readonly #options: ConnectionOptions;
  readonly #token: string | undefined;
  #everReached = false;

  constructor(options: ConnectionOptions) {
    const { url, token } = locate(options);
    if (!URL.canParse(url) || !/^https?:/.test(url)) throw invalidUrl(url);
    this.url = withoutTrailingSlashes(url);
    this.onRetry = options.onRetry;
    this.#options = options;
    this.#token = token;
  }

  /** One call, its answer checked against `schema`; throws {@link ErrandApiError}, or the signal's reason. */
  async request<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    const holdMs = (call.holdSeconds ?? 0) * 1000;
    const limit = new TimeLimit(call.timeoutMs ?? holdMs + ANSWER_MS, call.signal);
    try {
      const response = await this.open(call, limit);
      const text = await this.#reading(limit, () => response.text());
      const parsed = parseLenient(schema, fromJson(text));
      if (parsed.ok) return parsed.value;
      const issue = parsed.error.issues[0];
      throw notOurs(this.url, response.status, `${issue?.path.join(".") || "body"}: ${issue?.message}`);
    } finally {
      limit.close();
    }
  }

  /**
   * As {@link request} for calls that are safe to repeat: they are, while the broker is away. Reads also bear with a
   * 429; work that is refused by one (`queue_full`) is its delegator's to hold back.
   */
  async persist<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    let giveUpAt: number | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.request(schema, call);
      } catch (error) {
        const isRead = call.method === undefined || call.method === "GET";
        if (!this.isPassing(error) || (error.status === 429 && !isRead)) throw error;
        const delayMs = backoffMs(failures, error.retryAfterMs);
        // The time counts from the first failure: the call before it may have been held for long.
        giveUpAt ??= performance.now() + (this.#options.retryForMs ?? 30_000);
        if (performance.now() + delayMs > giveUpAt) throw error;
        await this.#rest(error, delayMs, call.signal);
      }
    }
  }

  /** As {@link request}, but waits out an outage and a 429. */
  async insist<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.request(schema, call);
      } catch (error) {
        if (!this.isPassing(error)) throw error;
        await this.#rest(error, backoffMs(failures, error.retryAfterMs), call.signal);
      }
    }
  }

  async #rest(error: ErrandApiError, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    this.onRetry?.(error, delayMs);
    await sleep(delayMs, signal);
  }

  /** It will pass: an outage, or a limit on how much may be asked. */
  isPassing(error: unknown): error is ErrandApiError {
    if (!(error instanceof ErrandApiError) || this.isHopeless(error)) return false;
    return isAway(error) || error.status === 429;
  }

  /** Nothing listens there and nothing ever did: for someone at a keyboard an error beats a silent wait. */
  isHopeless(error: ErrandApiError): boolean {
    const nobody = error.code === "unreachable" || error.code === "no_answer";
    return this.#options.failFast !== false && !this.#everReached && nobody;
  }

  /** The response as soon as its head is there; refusals are thrown. The limit bounds the body too. */
  async open(call: Call, limit: TimeLimit): Promise<Response> {
    const url = new URL(this.url + call.path);
    for (const [key, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(key, String(value));
    }
    const { fetch = globalThis.fetch } = this.#options;
    const token = this.#token;
    const response = await this.#reading(limit, () =>
      fetch(url, {
        method: call.method ?? "GET",
        headers: {
          accept: "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(call.body !== undefined && { "content-type": "application/json" }),
          ...call.headers,
        },
        ...(call.body !== undefined && { body: toJson(call) }),
        redirect: "manual",
        signal: limit.signal,
      }),
    );
    this.#everReached = true;
    if (response.ok) return response;
    const text = await this.#reading(limit, () => response.text());
    const problem = problemSchema.safeParse(fromJson(text));
    if (!problem.success) throw notOurs(this.url, response.status, "no problem document");
    throw new ErrandApiError(problem.data, {
      retryAfterMs: retryAfterMs(response.headers),
      hint: this.#hintFor(problem.data.code),
    });
  }

  /** The remedy in the library's words, where the broker's speak of HTTP and a beginner meets them. */
  #hintFor(code: string): string | undefined {
    if (code === "unauthenticated" && this.#token === undefined) {
      return "Pass { token }, or set ERRAND_TOKEN (it goes to the broker of ERRAND_URL alone).";
    }
    if (code === "agent_unknown") return "'errand agent put' makes one, or new Admin().putAgent(name).";
    return undefined;
  }

  /** What reading from the network throws, in the client's words; the caller's own abort passes as it is. */
  async #reading<T>(limit: TimeLimit, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      throw this.lost(error, limit);
    }
  }

  lost(error: unknown, limit: TimeLimit): unknown {
    if (limit.expired) return noAnswer(this.url);
    if (limit.signal.aborted) return limit.signal.reason;
    const failure = failed(this.url, error, this.#everReached);
    this.#everReached ||= failure.code !== "unreachable";
    return failure;
  }
}

/** Repairs half characters in agents' calls: a refusal would lose finished work. */
function toJson({ path, body }: Call): string {
  const json = JSON.stringify(body);
  return path.startsWith("/v1/leases/") ? wellFormedJson(json) : json;
}

function fromJson(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
