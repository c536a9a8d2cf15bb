/** Entity tags of responses that clients may keep. Limit: the comparison is weak, as RFC 9110 asks of `If-None-Match`. */
import { createHash } from "node:crypto";
import { hasAnyTag } from "../../util/entity-tags.ts";

export const hashOf = (content: string | Uint8Array): string =>
  createHash("sha256").update(content).digest("base64url").slice(0, 27);

export const weakTag = (content: string | Uint8Array): string => `W/"${hashOf(content)}"`;

/** Whether an `If-None-Match` header names this tag; false without the header. */
export const namesTag = (header: string | undefined, tag: string): boolean =>
  hasAnyTag(header, (opaque) => tag.replace(/^W\//, "") === `"${opaque}"`);
