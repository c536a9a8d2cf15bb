/**
 * Converts errors of the SDKs of OpenAI, Anthropic and Google Gemini to the error of a reply: category, provider, and
 * whether a retry may help. Limit: no SDK is imported, so errors are recognized by their shape; all others return null.
 */
import * as z from "zod";
import type { ReplyInput } from "../schema/lease.ts";

type ReplyError = NonNullable<ReplyInput["error"]>;
type Kind = Pick<ReplyError, "category" | "retryable">;

const AUTH: Kind = { category: "AUTH", retryable: false };
const TRANSPORT: Kind = { category: "TRANSPORT", retryable: true };
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
  RESOURCE_EXHAUSTED: TEMPORARY,
  INTERNAL: TEMPORARY,
  UNAVAILABLE: TEMPORARY,
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
    if (status === 401) return AUTH;
    if (status === 408) return TIMEOUT;
    return status === 429 || status >= 500 ? TEMPORARY : PERMANENT;
  }
  if (word !== undefined) return PERMANENT;
  if (/timed? ?out|deadline exceeded/i.test(message)) return TIMEOUT;
  return /fetch failed|error fetching|network|ECONN|ENOTFOUND/i.test(message) ? TRANSPORT : PERMANENT;
}

export function providerError(error: unknown): (Required<Kind> & { readonly provider: string }) | null {
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
  const { category = "UPSTREAM", retryable = false } = kindOf(names, statuses, error.message);
  return { category, retryable, provider };
}
