/** The W3C trace context of a request. Limit: `traceparent` only. */

/** A malformed header is ignored; the work is not refused for it. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export const traceparentOf = (given: unknown): string | undefined =>
  typeof given === "string" && TRACEPARENT.test(given) ? given : undefined;
