/** Sends the heartbeats of one lease over HTTP, and derives from the broker's errors whether the lease is lost. */
import * as z from "zod";
import type { LeaseTransport } from "../lease-holder/lease-holder.ts";
import { toLostReason } from "../lease-holder/lost.ts";
import { heartbeatSchema } from "../schema/lease.ts";
import { ErrandApiError, isInvalid } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { longestRetryMs } from "./outage.ts";

export function leaseTransport(http: Http, leaseId: string): LeaseTransport {
  const path = route`/v1/leases/${leaseId}/heartbeat`;
  return {
    longestRetryMs: longestRetryMs(http.url),
    heartbeat: (body, limits) => http.request(heartbeatSchema, { method: "POST", path, body, ...limits }),
    judge(error) {
      if (!(error instanceof ErrandApiError)) return { kind: "retry" };
      const { code, status, details, retryAfterMs } = error;
      if (code === "lease_lost") return { kind: "lost", reason: toLostReason(details?.reason) };
      if (code === "lease_unknown") return { kind: "lost", reason: "unknown" };
      if (status === 401 || status === 403) return { kind: "lost", reason: "refused" };
      return isInvalid(error)
        ? { kind: "refused", isForUsage: isForUsage(error) }
        : { kind: "retry", retryAfterMs };
    },
  };
}

/** Whether the broker refused a call only for its usage: then the call is repeated without it. */
const issuesSchema = z.array(z.object({ path: z.string() }));

export function isForUsage(error: unknown): boolean {
  if (!isInvalid(error)) return false;
  const { data = [] } = issuesSchema.safeParse(error.details?.issues);
  return data.length > 0 && data.every(({ path }) => path === "usage" || path.startsWith("usage."));
}
