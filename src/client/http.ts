/**
 * HTTP to a broker: JSON, bearer token, problem+json as ErrandApiError, repeats while the broker is away.
 * Limit: one gateway URL; redirects are not followed, so that the token goes nowhere else.
 */
import type { z } from "zod";
import { problemSchema } from "../schema/errors.ts";
import { ErrandApiError, isAway, localError } from "./errors.ts";
import { parseLenient } from "./lenient.ts";
import { backoffMs, sleep, TimeLimit } from "./timing.ts";

export interface ConnectionOptions {
  /** Base URL of a gateway, for example `http://127.0.0.1:4180`. */
  readonly url: string;
  readonly token?: string | undefined;
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** How long a call that is safe to repeat is repeated while the broker is away; default 30 s. */
  readonly retryForMs?: number | undefined;
  /** Give up at once when nothing listens at the URL and nothing ever did; default false. */
  readonly failFast?: boolean | undefined;
  /** Told before each repeat. */
  readonly onRetry?: ((error: ErrandApiError, delayMs: number) => void) | undefined;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
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
const NEVER_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

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
  return value.toFixed(3).replace(/\.?0+$/, "");
}

export class Http {
  readonly url: string;
  readonly onRetry: ConnectionOptions["onRetry"];
  readonly #options: ConnectionOptions;
  #everReached = false;

  constructor(options: ConnectionOptions) {
    if (!URL.canParse(options.url) || !/^https?:/.test(options.url)) {
      throw localError({
        code: "invalid_url",
        category: "CONFIG",
        detail: `'${options.url}' is not an http(s) URL`,
        recovery: "Give the broker's URL, for example http://127.0.0.1:4180.",
      });
    }
    this.url = options.url.replace(/\/+$/, "");
    this.onRetry = options.onRetry;
    this.#options = options;
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
      throw this.#notOurs(response.status, `${issue?.path.join(".") || "body"}: ${issue?.message}`);
    } finally {
      limit.close();
    }
  }

  /** As {@link request} for calls that are safe to repeat: they are, while the broker is away. */
  persist<T>(schema: z.ZodType<T>, call: Call): Promise<T> {
    return this.repeat(call.signal, () => this.request(schema, call));
  }

  async repeat<T>(signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    let giveUpAt: number | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof ErrandApiError) || !isAway(error) || this.isHopeless(error)) throw error;
        const delayMs = backoffMs(failures, error.retryAfterMs);
        // The time counts from the first failure: the call before it may have been held for long.
        giveUpAt ??= performance.now() + (this.#options.retryForMs ?? 30_000);
        if (performance.now() + delayMs > giveUpAt) throw error;
        this.onRetry?.(error, delayMs);
        await sleep(delayMs, signal);
      }
    }
  }

  /** Nothing listens there and nothing ever did: for someone at a keyboard an error beats a silent wait. */
  isHopeless(error: ErrandApiError): boolean {
    return this.#options.failFast === true && !this.#everReached && error.code === "unreachable";
  }

  /** The response as soon as its head is there; refusals are thrown. The limit bounds the body too. */
  async open(call: Call, limit: TimeLimit): Promise<Response> {
    const url = new URL(this.url + call.path);
    for (const [key, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(key, String(value));
    }
    const { token, fetch = globalThis.fetch } = this.#options;
    const response = await this.#reading(limit, () =>
      fetch(url, {
        method: call.method ?? "GET",
        headers: {
          accept: "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(call.body !== undefined && { "content-type": "application/json" }),
          ...call.headers,
        },
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
        redirect: "manual",
        signal: limit.signal,
      }),
    );
    this.#everReached = true;
    if (response.ok) return response;
    const text = await this.#reading(limit, () => response.text());
    const problem = problemSchema.safeParse(fromJson(text));
    if (!problem.success) throw this.#notOurs(response.status, "no problem document");
    throw new ErrandApiError(problem.data, { retryAfterMs: retryAfterMs(response.headers) });
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
    if (limit.expired) {
      return localError({
        code: "no_answer",
        category: "TRANSPORT",
        detail: `${this.url} did not answer in time`,
        recovery: "Try again; check the broker's health with GET /readyz.",
        retryable: true,
        details: { outcome: "unknown" },
      });
    }
    if (limit.signal.aborted) return limit.signal.reason;
    const why = systemCode(error);
    const refused = why !== undefined && NEVER_CONNECTED.includes(why);
    this.#everReached ||= !refused;
    return localError(
      {
        code: refused ? "unreachable" : "connection_lost",
        category: "TRANSPORT",
        detail: refused
          ? `nothing answers at ${this.url} (${why})`
          : `the connection to ${this.url} was lost${why ? ` (${why})` : ""}`,
        recovery: refused
          ? "Start the broker with 'errand serve', or check the URL."
          : "Try again with the same Idempotency-Key; the outcome is unknown.",
        retryable: true,
        ...(!refused && { details: { outcome: "unknown" } }),
      },
      error,
    );
  }

  #notOurs(status: number, why: string): ErrandApiError {
    const passing = status >= 500 || status === 429 || status === 408;
    return localError({
      code: "invalid_response",
      category: passing ? "TRANSPORT" : "CONFIG",
      detail: `${this.url} answered ${status} with something unexpected (${why})`,
      recovery: passing ? "Try again later." : "Check that the URL is an Errand broker of this version.",
      status,
      retryable: passing,
    });
  }
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

/** Node names the cause of a failed fetch; browsers say nothing, for safety. */
function systemCode(error: unknown): string | undefined {
  let why: string | undefined;
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
    why = at.message;
  }
  return why;
}
