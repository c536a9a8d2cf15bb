/**
 * `/healthz` and `/readyz`, for load balancers and monitors. These often send no Host header, or the address of one
 * gateway, so any Host is answered. Limit: HTTP/1.1 requires a Host header, so without one Node answers 400.
 */
import type { IncomingMessage } from "node:http";
import type { Readiness } from "../../redis/connections.ts";
import { HANDOVER } from "./shutdown-hooks.ts";
import { json, type TextResponse } from "./text-response.ts";

export interface HealthOptions {
  readonly stopping: AbortSignal;
  readonly readiness: () => Promise<Readiness>;
}

type HealthCheck = (options: HealthOptions) => Promise<TextResponse>;

const RETRY = { "retry-after": "1" };

async function readyz({ stopping, readiness }: HealthOptions): Promise<TextResponse> {
  const isShutDown = stopping.aborted && stopping.reason !== HANDOVER;
  if (isShutDown) return json(503, { status: "not_ready", reason: "shutting down" }, RETRY);
  const found = await readiness();
  return found.status === "not_ready" ? json(503, found, RETRY) : json(200, found);
}

export const HEALTH_CHECKS: Readonly<Record<string, HealthCheck>> = {
  "/healthz": async () => json(200, { status: "ok" }),
  "/readyz": readyz,
};

export const isHealthCheck = (path: string): boolean => Object.hasOwn(HEALTH_CHECKS, path);

/** Replaces the Host of a health check that has none, or one that no URL can have, which Hono would refuse. */
export function repairHost({ url = "", headers }: IncomingMessage): void {
  // The first test is for all the requests that are none.
  if (!/^\/(?:healthz|readyz)/.test(url) || !isHealthCheck(url.replace(/\?.*/s, ""))) return;
  if (!headers.host || !/^[\w.-]+(?::\d{1,4})?$/.test(headers.host)) headers.host = "localhost";
}
