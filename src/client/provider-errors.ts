/**
 * Converts errors of the SDKs of OpenAI, Anthropic and Google Gemini: those after which the worker cannot work at all to a
 * {@link WorkerUnavailableError}, others to the error of a reply: category, provider, and whether a retry may help. Limit: no SDK is imported, so errors are recognized by their shape; all others return null.
 */
import * as z from "zod";
import type { ReplyInput } from "../schema/lease.ts";
import { WorkerUnavailableError } from "./unavailable.ts";

type ReplyError = NonNullable<ReplyInput["error"]>;
interface Kind extends Pick<ReplyError, "category" | "retryable"> {
  /** Why no other work would succeed either. */
  readonly unable?: string;
}

const AUTH: Kind = { category: "AUTH", retryable: false, unable: "it does not accept the credentials" };
const TRANSPORT: Kind = { category: "TRANSPORT", retryable: true, unable: "it cannot be reached" };
const LIMITED: Kind = { category: "UPSTREAM", retryable: true, unable: "its limit is reached" };
const OVERLOADED: Kind = { category: "UPSTREAM", retryable: true, unable: "it is overloaded" };
const UNPAID: Kind = { category: "UPSTREAM", retryable: false, unable: "it wants a payment" };
const TIMEOUT: Kind = { category: "TIMEOUT", retryable: true };
const TEMPORARY: Kind = { category: "UPSTREAM", retryable: true };
const PERMANENT: Kind = { category: "UPSTREAM", retryable: false };

/** Each provider, and the names of its SDK's error classes; a base class is enough. */
const PROVIDERS = [
  ["openai", /^OpenAIError$/],
  ["anthropic", /^AnthropicError$/],
  ["google-gemini", /^(?:GoogleGenerativeAI\w*Error|GeminiNextGenAPIClientError|GoogleGenAiError)$/],
] as const;

const GOOGLE_STATUS: Readonly<Record<string, Kind>> = {
  UNAUTHENTICATED: AUTH,
  RESOURCE_EXHAUSTED: LIMITED,
  INTERNAL: TEMPORARY,
  UNAVAILABLE: OVERLOADED,
  DEADLINE_EXCEEDED: TIMEOUT,
  INVALID_ARGUMENT: PERMANENT,
};

/** The names of the error and of its base classes. */
function classNames(error: Error): string[] {
  const names = [error.name];
  for (let at: unknown = Object.getPrototypeOf(error); at instanceof Error; at = Object.getPrototypeOf(at)) {
    names.push(at.constructor.name);
  }
  return names;
}

const BY_STATUS: Readonly<Record<number, Kind>> = {
  401: AUTH,
  402: UNPAID,
  408: TIMEOUT,
  429: LIMITED,
  503: OVERLOADED,
  529: OVERLOADED,
};

const genaiSchema = z.looseObject({ error: z.looseObject({ code: z.number(), status: z.string() }) });

/** Several SDKs have an `ApiError`; the message of that of @google/genai contains the JSON of Google's error. */
function genaiStatus({ name, message }: Error): string | undefined {
  if (name !== "ApiError") return undefined;
  try {
    return genaiSchema.safeParse(JSON.parse(message.slice(message.indexOf("{")))).data?.error.status;
  } catch {
    return undefined;
  }
}

function kindOf(names: readonly string[], statuses: readonly unknown[], message: string): Kind {
  if (names.some((name) => /Timeout/.test(name))) return TIMEOUT;
  if (names.includes("APIConnectionError")) return TRANSPORT;
  const word = statuses.find((status) => typeof status === "string");
  const known = word === undefined ? undefined : GOOGLE_STATUS[word];
  if (known) return known;
  const status = statuses.find((one) => typeof one === "number");
  if (status !== undefined) {
    return BY_STATUS[status] ?? (status >= 500 ? TEMPORARY : PERMANENT);
  }
  if (word !== undefined) return PERMANENT;
  if (/timed? ?out|deadline exceeded/i.test(message)) return TIMEOUT;
  return /fetch failed|error fetching|network|ECONN|ENOTFOUND/i.test(message) ? TRANSPORT : PERMANENT;
}

export type ProviderFailure = Required<Pick<ReplyError, "category" | "retryable">> & {
  readonly provider: string;
};

interface Found extends ProviderFailure {
  readonly unable: string | undefined;
  readonly status: number | undefined;
}

function find(error: unknown): Found | null {
  if (!(error instanceof Error)) return null;
  const names = classNames(error);
  const genai = genaiStatus(error);
  const provider =
    genai === undefined
      ? PROVIDERS.find(([, ours]) => names.some((name) => ours.test(name)))?.[0]
      : "google-gemini";
  if (provider === undefined) return null;
  const statuses = [
    genai,
    "status" in error ? error.status : undefined,
    "statusCode" in error ? error.statusCode : undefined,
  ];
  const { category = "UPSTREAM", retryable = false, unable } = kindOf(names, statuses, error.message);
  return { category, retryable, provider, unable, status: statuses.find((one) => typeof one === "number") };
}

/** The error of a reply; null for an error of no known SDK. */
export function providerError(error: unknown): ProviderFailure | null {
  const found = find(error);
  return found && { category: found.category, retryable: found.retryable, provider: found.provider };
}

/** Null if the error does not say that other work would fail as well. */
export function providerUnavailable(error: unknown): WorkerUnavailableError | null {
  const found = find(error);
  if (found?.unable === undefined || !(error instanceof Error)) return null;
  const { provider, unable, status } = found;
  const reason = `${provider}: ${unable}${status === undefined ? "" : ` (${status})`}`;
  return new WorkerUnavailableError(reason, { retryAfterSeconds: retryAfter(error), cause: error });
}

/** The SDKs of OpenAI and Anthropic keep the answer's headers, as a Headers object or by name. */
function retryAfter(error: Error): number | undefined {
  const headers: unknown = "headers" in error ? error.headers : undefined;
  const ms = Number(headerOf(headers, "retry-after-ms") ?? Number.NaN);
  if (ms >= 0) return ms / 1000;
  const value = headerOf(headers, "retry-after");
  if (value === undefined || value.trim() === "") return undefined;
  const seconds = Number.isNaN(Number(value)) ? (Date.parse(value) - Date.now()) / 1000 : Number(value);
  return seconds >= 0 ? seconds : undefined;
}

const headersSchema = z.record(z.string(), z.unknown());

function headerOf(headers: unknown, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headersSchema.safeParse(headers).data?.[name];
  return typeof value === "string" ? value : undefined;
}
