import { expect, test } from "vitest";
import { providerError } from "../../src/client/provider-errors.ts";

// Shaped as those of the SDKs: the same chains of classes, the same members.
class OpenAIError extends Error {}
class AnthropicError extends Error {}
class GoogleGenerativeAIError extends Error {}

type ErrorClass = new (message?: string) => Error;

const derived = (base: ErrorClass, name: string, status?: number | string, message = "no"): Error => {
  const classes: Record<string, ErrorClass> = { [name]: class extends base {} };
  const Made = classes[name] ?? Error;
  return Object.assign(new Made(message), status !== undefined && { status });
};

const AI = [
  ["AuthenticationError", 401, "AUTH", false],
  ["RateLimitError", 429, "UPSTREAM", true],
  ["APIConnectionError", undefined, "TRANSPORT", true],
  ["APIConnectionTimeoutError", undefined, "TIMEOUT", true],
  ["BadRequestError", 400, "UPSTREAM", false],
  ["InternalServerError", 503, "UPSTREAM", true],
  ["APIError", undefined, "UPSTREAM", false],
] as const;

test.each(AI)("%s of OpenAI and Anthropic", (name, status, category, retryable) => {
  const openai = providerError(derived(OpenAIError, name, status));
  expect(openai).toEqual({ category, retryable, provider: "openai" });
  const anthropic = providerError(derived(AnthropicError, name, status));
  expect(anthropic).toEqual({ category, retryable, provider: "anthropic" });
});

test.each([
  ["UNAUTHENTICATED", "no", "AUTH", false],
  ["RESOURCE_EXHAUSTED", "no", "UPSTREAM", true],
  ["INVALID_ARGUMENT", "no", "UPSTREAM", false],
  ["INTERNAL", "no", "UPSTREAM", true],
  [429, "no", "UPSTREAM", true],
  [undefined, "Error fetching from https://x: fetch failed", "TRANSPORT", true],
  [undefined, "the request timed out", "TIMEOUT", true],
  [undefined, "no", "UPSTREAM", false],
] as const)("%s of Gemini, %s", (status, message, category, retryable) => {
  const error = derived(GoogleGenerativeAIError, "GoogleGenerativeAIFetchError", status, message);
  expect(providerError(error)).toEqual({ category, retryable, provider: "google-gemini" });
});

test("others are not touched", () => {
  expect(providerError(new Error("x"))).toBeNull();
  expect(providerError("x")).toBeNull();
  expect(providerError(Object.assign(new Error("x"), { status: 429 }))).toBeNull();
});
