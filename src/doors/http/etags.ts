/** Entity tags of responses that clients may keep. Limit: the comparison is weak, as RFC 9110 asks of `If-None-Match`. */
import { createHash } from "node:crypto";

export const weakTag = (content: string | Uint8Array): string =>
  `W/"${createHash("sha256").update(content).digest("base64url").slice(0, 27)}"`;

const opaqueTag = (tag: string): string => tag.trim().replace(/^W\//, "");

/** Whether an `If-None-Match` header names this tag; false without the header. */
export const namesTag = (header: string | undefined, tag: string): boolean =>
  (header ?? "").split(",").some((one) => one.trim() === "*" || opaqueTag(one) === opaqueTag(tag));
