/** The W3C trace context that a request came with. Limit: `traceparent` alone. */

/** Anything else is somebody's mistake and not worth refusing work for. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export const traceparentOf = (given: unknown): string | undefined =>
  typeof given === "string" && TRACEPARENT.test(given) ? given : undefined;
