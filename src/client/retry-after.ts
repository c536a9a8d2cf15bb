import type { ReadableHeaders } from "./transport.ts";

/** `Retry-After` in milliseconds, from seconds or a date; undefined if there is none. */
export function retryAfterMs(headers: ReadableHeaders): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
