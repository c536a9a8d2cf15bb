/**
 * Sends many delegations in few requests; each is accepted or refused on its own, in order. Limit: a request has at
 * most 100 delegations and half of a broker's default body limit, unless a single delegation is larger.
 */
import * as z from "zod";
import { type DelegateInput, delegationSchema } from "../schema/delegation.ts";
import { LIMITS } from "../schema/limits.ts";
import { problemSchema } from "../schema/problem.ts";
import { ErrandApiError } from "./errors.ts";
import type { Http } from "./http.ts";
import { randomKey } from "./random-key.ts";

/** One delegation of a batch. A repeated `idempotency_key` returns the same delegation; default: a random key. */
export type BatchInput = DelegateInput & { readonly idempotency_key?: string | undefined };

/** The result for one delegation: accepted (perhaps earlier, under its key), or refused with the reason. */
export type BatchResult =
  | { readonly delegation: z.infer<typeof delegationSchema>; readonly error?: undefined }
  | { readonly delegation?: undefined; readonly error: ErrandApiError };

export interface BatchOptions {
  readonly signal?: AbortSignal | undefined;
}

const resultsSchema = z.object({
  results: z.array(
    z.union([
      z.object({ status: z.int(), delegation: delegationSchema }),
      z.object({ status: z.int(), error: problemSchema }),
    ]),
  ),
});

const MAX_BYTES = LIMITS.body_bytes.value / 2;

/** Rejects only with the signal's reason; any other failure is in the results that it affects. */
export async function delegateAll(
  http: Http,
  inputs: readonly BatchInput[],
  { signal }: BatchOptions,
): Promise<BatchResult[]> {
  const keyed = inputs.map((input) => ({ ...input, idempotency_key: input.idempotency_key ?? randomKey() }));
  const results: BatchResult[] = [];
  for (const delegations of chunked(keyed)) {
    try {
      const path = "/v1/delegations/batch";
      const answer = await http.requestWithRetry(resultsSchema, {
        method: "POST",
        path,
        body: { delegations },
        signal,
      });
      results.push(...answer.results.map(toResult));
    } catch (error) {
      if (!(error instanceof ErrandApiError)) throw error;
      while (results.length < inputs.length) results.push({ error });
      return results;
    }
  }
  return results;
}

function* chunked<T>(items: readonly T[]): Generator<T[]> {
  const encoder = new TextEncoder();
  let chunk: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = encoder.encode(JSON.stringify(item)).length + 1;
    if (chunk.length === LIMITS.batch.value || (chunk.length > 0 && bytes + size > MAX_BYTES)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(item);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}

function toResult(result: z.infer<typeof resultsSchema>["results"][number]): BatchResult {
  if ("delegation" in result) return { delegation: result.delegation };
  const { error } = result;
  const after = error.details?.retry_after_seconds;
  return {
    error: new ErrandApiError(error, typeof after === "number" ? { retryAfterMs: after * 1000 } : {}),
  };
}
