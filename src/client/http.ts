/**
 * HTTP to a broker: JSON, a bearer token, problem+json as ErrandApiError, retries while the broker is away.
 * Limit: one gateway URL; redirects are not followed, so that the token is sent to no other server.
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
   * Base URL of a gateway. Default: the environment variable `ERRAND_URL`, else `http://127.0.0.1:4180`. The
   * constructor throws `invalid_url` if it is not an http or https URL.
   */
  readonly url?: string | undefined;
  /**
   * The bearer token. Default: the environment variable `ERRAND_TOKEN`, unless `url` names another broker than
   * `ERRAND_URL` does. Without a token, most calls are refused (`unauthenticated`).
   */
  readonly token?: string | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * How long a call is retried while the broker is away (no answer, a lost connection, 502 to 504), in milliseconds
   * from its first failure. Only calls that are safe to repeat are retried. Default 30 000; 0 never retries. Streams,
   * inboxes and agents wait out any outage.
   */
  readonly retryForMs?: number | undefined;
  /**
   * Whether to throw `unreachable` at once when nothing answers at the URL and nothing ever did. Default true: the
   * first call then reveals a wrong URL, or a broker that was not started. False retries as in an outage, for services
   * that start in any order.
   */
  readonly failFast?: boolean | undefined;
  /** Called before each retry, with the error and the delay in milliseconds. */
  readonly onRetry?: ((error: ErrandApiError, delayMs: number) => void) | undefined;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Built by {@link route}. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** How long the gateway may delay its answer; the time limit starts after that. */
  readonly holdSeconds?: number;
  /** Default: `holdSeconds` plus 15 s. */
  readonly timeoutMs?: number;
}

/** Without an answer for this long after `holdSeconds`, the connection is dead. */
const ANSWER_MS = 15_000;

/** A path with escaped parts: route`/v1/agents/${name}`. */
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

/** Seconds for a query string: without an exponent. */
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

  /** Makes one call and checks its answer against `schema`. Throws {@link ErrandApiError}, or the signal's reason. */
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
   * As {@link request}, but retries while the broker is away, so the call must be safe to repeat. Reads are also
   * retried after a 429; other calls are not, because a delegator must decide what to do when its work is refused
   * (`queue_full`).
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
        // The time counts from the first failure, because the gateway may have held the first call for long.
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

  /** True for errors that pass: an outage, or a rate limit. */
  isPassing(error: unknown): error is ErrandApiError {
    if (!(error instanceof ErrandApiError) || this.isHopeless(error)) return false;
    return isAway(error) || error.status === 429;
  }

  /**
   * True if nothing answers at the URL and nothing ever did. A person at a keyboard prefers an error to a silent wait.
   */
  isHopeless(error: ErrandApiError): boolean {
    const nobody = error.code === "unreachable" || error.code === "no_answer";
    return this.#options.failFast !== false && !this.#everReached && nobody;
  }

  /** Returns the response as soon as its head has arrived; throws refusals. The limit also bounds the body. */
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

  /** The recovery in terms of the library, for errors that beginners get and whose own recovery speaks of HTTP. */
  #hintFor(code: string): string | undefined {
    if (code === "unauthenticated" && this.#token === undefined) {
      return "Pass { token }, or set ERRAND_TOKEN (it goes to the broker of ERRAND_URL alone).";
    }
    if (code === "agent_unknown") return "'errand agent put' makes one, or new Admin().putAgent(name).";
    return undefined;
  }

  /** Turns what a network read throws into an ErrandApiError; the caller's own abort passes unchanged. */
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

/** Repairs half characters in agents' calls, because a refusal would lose finished work. */
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
