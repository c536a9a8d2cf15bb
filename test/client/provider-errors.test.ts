import { describe, expect, test } from "vitest";
import { providerError, providerUnavailable } from "../../src/client/provider-errors.ts";

// The same class hierarchies and members as in the SDKs.
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

// As in @google/genai 2.32: one class for every answer of the API, its JSON as the message.
class ApiError extends Error {
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

const googles = (code: number, status: string) => JSON.stringify({ error: { code, message: "no", status } });

test.each([
  [401, googles(401, "UNAUTHENTICATED"), "AUTH", false],
  [429, googles(429, "RESOURCE_EXHAUSTED"), "UPSTREAM", true],
  [400, googles(400, "INVALID_ARGUMENT"), "UPSTREAM", false],
  [404, googles(404, "NOT_FOUND"), "UPSTREAM", false],
  [504, googles(504, "DEADLINE_EXCEEDED"), "TIMEOUT", true],
  [502, googles(502, "Bad Gateway"), "UPSTREAM", true],
  [503, `got status: UNAVAILABLE. ${googles(503, "UNAVAILABLE")}`, "UPSTREAM", true],
] as const)("an ApiError of @google/genai, %s %s", (status, message, category, retryable) => {
  const error = new ApiError(message, status);
  expect(providerError(error)).toEqual({ category, retryable, provider: "google-gemini" });
});

test("the other errors of @google/genai", () => {
  class GeminiNextGenAPIClientError extends Error {}
  class GoogleGenAiError extends Error {}
  const limited = derived(GeminiNextGenAPIClientError, "RateLimitError", 429);
  expect(providerError(limited)).toMatchObject({ category: "UPSTREAM", retryable: true });
  const late = derived(GeminiNextGenAPIClientError, "APIConnectionTimeoutError");
  expect(providerError(late)).toMatchObject({ category: "TIMEOUT", provider: "google-gemini" });
  const failed = Object.assign(derived(GoogleGenAiError, "CreateInteractionServerError"), {
    statusCode: 503,
  });
  expect(providerError(failed)).toMatchObject({ category: "UPSTREAM", retryable: true });
});

test("other errors are not changed", () => {
  expect(providerError(new Error("x"))).toBeNull();
  expect(providerError("x")).toBeNull();
  expect(providerError(Object.assign(new Error("x"), { status: 429 }))).toBeNull();
  expect(providerError(new ApiError("Too Many Requests", 429))).toBeNull();
  expect(providerError(new ApiError('{"error":"slow down"}', 429))).toBeNull();
});

describe("an error after which no other work would succeed", () => {
  const at = (name: string, status?: number, headers?: unknown) =>
    Object.assign(derived(AnthropicError, name, status), { headers });
  test.each([
    ["not signed in", at("AuthenticationError", 401), "anthropic: it does not accept the credentials (401)"],
    ["not paid", at("APIError", 402), "anthropic: it wants a payment (402)"],
    ["a limit", at("RateLimitError", 429), "anthropic: its limit is reached (429)"],
    ["overload", at("InternalServerError", 529), "anthropic: it is overloaded (529)"],
    ["no network", at("APIConnectionError"), "anthropic: it cannot be reached"],
    [
      "a limit of Google",
      new ApiError(googles(429, "RESOURCE_EXHAUSTED"), 429),
      "google-gemini: its limit is reached (429)",
    ],
    [
      "Google's overload",
      new ApiError(googles(503, "UNAVAILABLE"), 503),
      "google-gemini: it is overloaded (503)",
    ],
  ])("%s", (_what, error, reason) => {
    expect(providerUnavailable(error)).toMatchObject({
      code: "worker_unavailable",
      message: reason,
      cause: error,
    });
  });

  test.each([
    ["a bad request", at("BadRequestError", 400)],
    ["a missing model", at("NotFoundError", 404)],
    ["an error of the server", at("InternalServerError", 500)],
    ["a timeout", at("APIConnectionTimeoutError")],
    ["an error of no SDK", Object.assign(new Error("429 Too Many Requests"), { status: 429 })],
  ])("is not %s", (_what, error) => {
    expect(providerUnavailable(error)).toBeNull();
  });

  test.each([
    [{ "retry-after": "90" }, 90],
    [new Headers({ "Retry-After": "7" }), 7],
    [new Headers({ "retry-after-ms": "1500", "retry-after": "2" }), 1.5],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "-5" }, undefined],
    [undefined, undefined],
  ])("has the time that the provider named: %s", (headers, seconds) => {
    expect(providerUnavailable(at("RateLimitError", 429, headers))?.retryAfterSeconds).toBe(seconds);
  });
});
