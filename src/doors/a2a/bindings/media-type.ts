/** The media type of an HTTP+JSON response: plain JSON or A2A's own. */
import { A2A_CONTENT_TYPE } from "@a2a-js/sdk";
import { parseAccept } from "hono/utils/accept";
import type { MountedRequest } from "../../http/mount.ts";

const PLAIN = "application/json";
type Headers = Pick<MountedRequest, "header">;

/** The media type that the request prefers; undefined if it accepts neither. */
function accepted({ header }: Headers): string | undefined {
  const ranges = parseAccept(header("accept") ?? "").filter(({ q }) => q > 0);
  return ranges
    .sort((a, b) => b.q - a.q)
    .map(({ type }) => type.toLowerCase())
    .find((type) => type === PLAIN || type === A2A_CONTENT_TYPE);
}

/** The media type of a result. Without a preference, it is that of the request's body. */
export function resultType(incoming: Headers): string {
  const isPlain = (incoming.header("content-type") ?? "").toLowerCase().startsWith(PLAIN);
  return accepted(incoming) ?? (isPlain ? PLAIN : A2A_CONTENT_TYPE);
}

/** The media type of an error. The default is plain JSON, because many clients and proxies read no other. */
export const errorType = (incoming: Headers): string => accepted(incoming) ?? PLAIN;
