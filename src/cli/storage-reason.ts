/**
 * The reason why the broker's Redis does not answer, or not for all requests. The broker's errors do not contain it; its
 * `/readyz` does, with host and port and without the password.
 */

import * as z from "zod";
import { ErrandApiError } from "../client/errors.ts";
import { Http } from "../client/http.ts";
import { KnownBroker } from "../client/known-broker.ts";
import { nodeTransport } from "./node-transport.ts";
import { oneLine } from "./show/output.ts";

const ANSWER_MS = 2_000;
const readinessSchema = z.object({ status: z.string(), reason: z.string() });

/** Returns a `redis_unavailable` error with the reason from `/readyz`, and any other error unchanged. */
export async function withStorageReason(
  error: ErrandApiError,
  url: string | undefined,
): Promise<ErrandApiError> {
  if (error.code !== "redis_unavailable" || url === undefined) return error;
  const unready = await unreadiness(url, error.problem.broker_id);
  if (unready === undefined) return error;
  const detail = `${error.message.replace(/\.$/, "")} (${unready.reason}).`;
  return new ErrandApiError({ ...error.problem, detail }, { cause: error });
}

/** Why the broker serves only a part of the requests; undefined if it serves all or none. */
export async function degradedBy(url: string): Promise<string | undefined> {
  const unready = await unreadiness(url);
  return unready?.status === "degraded" ? unready.reason : undefined;
}

/** The status and reason of `/readyz` of a broker that is not ready. */
async function unreadiness(url: string, brokerId?: string) {
  const known = new KnownBroker();
  known.accepts(brokerId);
  try {
    const response = await nodeTransport()(new URL(`${new Http({ url }).url}/readyz`), {
      method: "GET",
      headers: {},
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (!known.sent(response)) return undefined;
    const { data } = readinessSchema.safeParse(JSON.parse(await response.text()));
    return data && { ...data, reason: oneLine(data.reason, 200).replace(/\.$/, "") };
  } catch {
    return undefined;
  }
}
