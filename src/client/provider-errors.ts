/**
 * Errors that the SDKs of OpenAI, Anthropic and Google Gemini throw, as a reply says them: category, provider, and
 * whether another try may help. Limit: told by their shape, for none of the SDKs is imported; anything else is null.
 */
import type { ReplyInput } from "../schema/lease.ts";

type ReplyError = NonNullable<ReplyInput["error"]>;
type Kind = Pick<ReplyError, "category" | "retryable">;

const AUTH: Kind = { category: "AUTH", retryable: false };
const TRANSPORT: Kind = { category: "TRANSPORT", retryable: true };
const TIMEOUT: Kind = { category: "TIMEOUT", retryable: true };
const PASSING: Kind = { category: "UPSTREAM", retryable: true };
const LASTING: Kind = { category: "UPSTREAM", retryable: false };

/** Names of the classes of their errors, base classes among them. */
const PROVIDERS = [
  ["openai", /^OpenAIError$/],
  ["anthropic", /^AnthropicError$/],
  ["google-gemini", /^GoogleGenerativeAI\w*Error$/],
] as const;

const GOOGLE_STATUS: Readonly<Record<string, Kind>> = {
  UNAUTHENTICATED: AUTH,
  RESOURCE_EXHAUSTED: PASSING,
  INTERNAL: PASSING,
  UNAVAILABLE: PASSING,
  DEADLINE_EXCEEDED: TIMEOUT,
  INVALID_ARGUMENT: LASTING,
};

/** Of the error and what it is derived from. */
function classNames(error: Error): string[] {
  const names = [error.name];
  for (let at: unknown = Object.getPrototypeOf(error); at instanceof Error; at = Object.getPrototypeOf(at)) {
    names.push(at.constructor.name);
  }
  return names;
}

function kindOf(names: readonly string[], status: unknown, message: string): Kind {
  if (names.some((name) => /Timeout/.test(name))) return TIMEOUT;
  if (names.includes("APIConnectionError")) return TRANSPORT;
  if (typeof status === "string") return GOOGLE_STATUS[status] ?? LASTING;
  if (typeof status === "number") {
    if (status === 401) return AUTH;
    if (status === 408) return TIMEOUT;
    return status === 429 || status >= 500 ? PASSING : LASTING;
  }
  if (/timed? ?out|deadline exceeded/i.test(message)) return TIMEOUT;
  return /fetch failed|error fetching|network|ECONN|ENOTFOUND/i.test(message) ? TRANSPORT : LASTING;
}

export function providerError(error: unknown): (Required<Kind> & { readonly provider: string }) | null {
  if (!(error instanceof Error)) return null;
  const names = classNames(error);
  const provider = PROVIDERS.find(([, ours]) => names.some((name) => ours.test(name)))?.[0];
  if (provider === undefined) return null;
  const status = "status" in error ? error.status : undefined;
  const { category = "UPSTREAM", retryable = false } = kindOf(names, status, error.message);
  return { category, retryable, provider };
}
