/**
 * Adds the reason why the broker's Redis does not answer to a command's error. The broker's errors do not contain the reason;
 * its `/readyz` does, with host and port and without the password.
 */
import { z } from "zod";
import { ErrandApiError } from "../client/errors.ts";
import { Http } from "../client/http.ts";
import { oneLine } from "./show/output.ts";

const ANSWER_MS = 2_000;
const readinessSchema = z.object({ reason: z.string() });

/** Returns a `redis_unavailable` error with the reason from `/readyz`, and any other error unchanged. */
export async function withStorageReason(
  error: ErrandApiError,
  url: string | undefined,
): Promise<ErrandApiError> {
  if (error.code !== "redis_unavailable" || url === undefined) return error;
  const reason = await reasonFrom(url);
  if (reason === undefined) return error;
  const detail = `${error.message.replace(/\.$/, "")} (${oneLine(reason, 200)}).`;
  return new ErrandApiError({ ...error.problem, detail }, { cause: error });
}

async function reasonFrom(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${new Http({ url }).url}/readyz`, {
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return readinessSchema.safeParse(await response.json()).data?.reason;
  } catch {
    return undefined;
  }
}
