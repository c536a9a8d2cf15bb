/**
 * Sends requests to a broker: JSON, a bearer token, problem+json as ErrandApiError, retries while the broker is
 * unavailable. An answer counts only if it has the broker's id; any other is an outage. Limit: one gateway URL; redirects
 * are not followed, so that the token is sent to no other server.
 */
import type * as z from "zod";
import { issuesOf } from "../schema/issues.ts";
import { problemSchema } from "../schema/problem.ts";
import { wellFormedJson, withoutTrailingSlashes } from "../schema/text.ts";
import { startOf } from "../util/text.ts";
import { backoffMs, sleep, TimeLimit } from "../util/timing.ts";
import { checkUrl, connectionError, noAnswer } from "./connection-errors.ts";
import { locate } from "./environment.ts";
import { environmentFetch } from "./environment-fetch.ts";
import { ErrandApiError, isUnavailable, localError } from "./errors.ts";
import { KnownBroker } from "./known-broker.ts";
import { parseLenient } from "./lenient.ts";
import { retryAfterMs } from "./retry-after.ts";
import { cleanToken, quotesHint } from "./token.ts";
import type { HttpResponse, Transport } from "./transport.ts";

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
  /**
   * Replaces the global `fetch`. Without it, the library on Node uses the proxy that `HTTPS_PROXY`, `HTTP_PROXY` and
   * `NO_PROXY` name, if the package `undici` is installed.
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * How long a call is retried while the broker is unavailable (no answer, a lost connection, 502 to 504), in
   * milliseconds from its first failure. Only calls that are safe to repeat are retried. Default 30 000; 0 never retries.
   * Streams, inboxes and agents retry without a limit, and so does the `delegator` of a handler if this is not given.
   */
  readonly retryForMs?: number | undefined;
  /**
   * Whether to throw at once while the broker was never reached. Default true: the first call then reveals a wrong URL,
   * or a broker that is not running. False retries as in an outage, for services that start in any order.
   */
  readonly failFast?: boolean | undefined;
  /** Called before each retry, with the error and the delay in milliseconds. */
  readonly onRetry?: ((error: ErrandApiError, delayMs: number) => void) | undefined;
}

/** For several clients of one program, which then agree on which broker is theirs. */
export interface Connection extends ConnectionOptions {
  readonly known?: KnownBroker | undefined;
  /** Sends what is answered as a whole, unless `fetch` is given. Streams always use fetch. */
  readonly transport?: Transport | undefined;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Built by {@link route}. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  /** The body, if it is not JSON. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Sends no token, for a call whose body has a code instead. */
  readonly anonymous?: boolean;
  /** How long the gateway may delay its answer; the time limit starts after that. */
  readonly holdSeconds?: number;
  /** Default: `holdSeconds` plus 15 s. */
  readonly timeoutMs?: number;
}

/** Codes of failures in which no broker was reached. */
const UNREACHED: readonly string[] = ["unreachable", "no_answer", "proxy_auth_required", "proxy_refused"];

/** An error document of the broker is shorter. */
const PROBLEM_BYTES = 1_000_000;

/** The connection counts as dead when an answer is this late, after `holdSeconds`. */
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
        recovery: "Pass a name or id.",
      });
    }
    return path + encodeURIComponent(part) + piece;
  });
}

/** Formats seconds for a query string, without an exponent. */
export function seconds(value: number): string {
  return String(Number(value.toFixed(3)));
}

export class Http {
  readonly url: string;
  readonly onRetry: ConnectionOptions["onRetry"];
  readonly #options: Connection;
  readonly #token: string | undefined;
  readonly #known: KnownBroker;
  #everReached = false;

  constructor(options: Connection) {
    const { url, token, tokenFrom } = locate(options);
    checkUrl(url);
    this.url = withoutTrailingSlashes(url);
    this.onRetry = options.onRetry;
    this.#options = options;
    this.#token = cleanToken(token, tokenFrom);
    this.#known = options.known ?? new KnownBroker();
  }

  /** How long a call is retried while the broker is unavailable, ms. */
  get retryForMs(): number {
    return this.#options.retryForMs ?? 30_000;
  }

  /** Makes one call and checks its answer against `schema`. Throws {@link ErrandApiError}, or the signal's reason. */
  async request<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    const holdMs = (call.holdSeconds ?? 0) * 1000;
    const limit = new TimeLimit(call.timeoutMs ?? holdMs + ANSWER_MS, call.signal);
    const { hasAnswered } = this;
    try {
      const response = await this.open(call, limit, this.#options.fetch ?? this.#options.transport);
      const text = await this.#reading(limit, () => response.text());
      const json = fromJson(text);
      const parsed = parseLenient(schema, json);
      if (parsed.success) return parsed.data;
      const why = issuesOf(parsed.error, { whole: "body" }).text;
      // A broker of another version sends the same again.
      const mayComeBack = json === undefined && this.#mayComeBack(hasAnswered);
      throw await this.#notTheBroker(response, text, mayComeBack, why);
    } finally {
      limit.close();
    }
  }

  /**
   * As {@link request}, but retries while the broker is unavailable, for `retryForMs` at most. The call must be safe to
   * repeat. Reads are also retried after a 429; other calls are not, because a delegator must decide what to do when its
   * work is refused (`queue_full`).
   */
  async requestWithRetry<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    let giveUpAt: number | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.request(schema, call);
      } catch (error) {
        // The answer that said so may be the lost one.
        if (
          failures > 0 &&
          call.method === "DELETE" &&
          error instanceof ErrandApiError &&
          error.status === 404
        ) {
          const done = parseLenient(schema, undefined);
          if (done.success) return done.data;
        }
        const isRead = call.method === undefined || call.method === "GET";
        if (!this.isTemporary(error) || (error.status === 429 && !isRead)) throw error;
        const delayMs = backoffMs(failures, error.retryAfterMs);
        // The time counts from the first failure, because the gateway may have held the first call for long.
        giveUpAt ??= performance.now() + this.retryForMs;
        if (performance.now() + delayMs > giveUpAt) throw error;
        await this.#waitToRetry(error, delayMs, call.signal);
      }
    }
  }

  /** As {@link request}, but retries an outage and a 429 without a limit. */
  async requestUntilAvailable<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.request(schema, call);
      } catch (error) {
        if (!this.isTemporary(error)) throw error;
        await this.#waitToRetry(error, backoffMs(failures, error.retryAfterMs), call.signal);
      }
    }
  }

  async #waitToRetry(error: ErrandApiError, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    this.onRetry?.(error, delayMs);
    await sleep(delayMs, signal);
  }

  /** True if a retry may succeed: for an outage or a rate limit, unless {@link failsFast} applies. */
  isTemporary(error: unknown): error is ErrandApiError {
    if (!(error instanceof ErrandApiError) || this.failsFast(error)) return false;
    return isUnavailable(error) || error.status === 429;
  }

  /** True if `failFast` is on and the broker was never reached. The URL is probably wrong, so a retry would not help. */
  failsFast(error: ErrandApiError): boolean {
    const isUnreached = UNREACHED.includes(error.code) && !this.#everReached && !this.hasAnswered;
    return this.#options.failFast !== false && isUnreached;
  }

  /** Returns the response as soon as its headers have arrived; throws refusals. The limit also bounds the body. */
  async open(
    call: Call,
    limit: TimeLimit,
    send: Transport = this.#options.fetch ?? environmentFetch,
  ): Promise<HttpResponse> {
    const url = new URL(this.url + call.path);
    for (const [key, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(key, String(value));
    }
    const token = call.anonymous ? undefined : this.#token;
    const response = await this.#reading(limit, () =>
      send(url, {
        method: call.method ?? "GET",
        headers: {
          accept: "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(call.body !== undefined && { "content-type": "application/json" }),
          ...(call.bytes !== undefined && { "content-type": "application/offset+octet-stream" }),
          ...call.headers,
        },
        ...(call.body !== undefined && { body: toJson(call) }),
        ...(call.bytes !== undefined && { body: call.bytes }),
        redirect: "manual",
        signal: limit.signal,
      }),
    );
    if (response.ok && this.#known.sent(response)) return response;
    const { text } = await this.#reading(limit, () => startOf(response, PROBLEM_BYTES));
    const { data } = problemSchema.safeParse(response.ok ? undefined : fromJson(text));
    if (!data || !this.#known.accepts(data.broker_id)) throw await this.#notTheBroker(response, text);
    // Quotes are legal in a token, so the broker decides; the CLI shows the detail, too.
    const quotes = data.code === "unauthenticated" && token !== undefined && quotesHint(token);
    const more = quotes || (data.code === "not_found" && this.#pathHint(data.detail));
    throw new ErrandApiError(more ? { ...data, detail: `${data.detail} ${more}` } : data, {
      retryAfterMs: retryAfterMs(response.headers),
      hint: call.anonymous ? undefined : this.#hintFor(data.code),
    });
  }

  /** Whether the broker has answered, to this client or to another that knows it. */
  get hasAnswered(): boolean {
    return this.#known.id !== undefined;
  }

  /**
   * How long the next call may wait at the broker: not at all until the broker has answered. If something else answers in
   * place of the broker while a first call waits, nothing shows that the URL is right.
   */
  holdSeconds(wanted: number): number {
    return this.hasAnswered ? wanted : 0;
  }

  #mayComeBack(hasAnswered: boolean): boolean {
    return hasAnswered || this.#options.failFast === false;
  }

  async #notTheBroker(
    response: HttpResponse,
    text: string,
    mayComeBack = this.#mayComeBack(this.hasAnswered),
    why?: string,
  ): Promise<ErrandApiError> {
    const answer = {
      url: this.url,
      response,
      text,
      why,
      known: this.#known,
      token: this.#token,
      mayComeBack,
    };
    // Loaded only when it is needed: pages load this file.
    return import("./not-the-broker.ts").then(
      ({ notTheBroker }) => notTheBroker(answer),
      (error: unknown) => connectionError(this.url, error, true),
    );
  }

  /** A proxy that serves a broker below a path removes the path. Without one, the broker's answer repeats it. */
  #pathHint(detail: string): string | undefined {
    const { origin, pathname } = new URL(this.url);
    if (pathname === "/" || !detail.includes(` ${pathname}/`)) return undefined;
    return `The broker's URL has the path '${pathname}', and no proxy removes it: pass ${origin}.`;
  }

  /** A recovery in terms of the library, for common errors whose own recovery is in terms of HTTP. */
  #hintFor(code: string): string | undefined {
    if (code === "unauthenticated" && this.#token === undefined) {
      return "Pass { token }, or set ERRAND_TOKEN, which is sent only to the broker of ERRAND_URL. The broker's operator creates one with 'errand invite <name>'.";
    }
    if (code === "agent_unknown") return "Create it with 'errand agent put' or new Admin().putAgent(name).";
    return undefined;
  }

  /** Runs a network read and throws its failure as {@link toError} converts it. */
  async #reading<T>(limit: TimeLimit, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      throw this.toError(error, limit);
    }
  }

  /** Converts an error of a network read to an ErrandApiError; for an abort by the caller, to the signal's reason. */
  toError(error: unknown, limit: TimeLimit): unknown {
    if (limit.expired) return noAnswer(this.url, error);
    if (limit.signal.aborted) return limit.signal.reason;
    if (error instanceof ErrandApiError) return error;
    const reached = this.#everReached || this.hasAnswered;
    const failure = connectionError(this.url, error, reached, this.hasAnswered);
    this.#everReached ||= failure.code === "connection_lost";
    return failure;
  }
}

/** Replaces lone surrogates in agents' calls, because a refusal would lose finished work. */
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
