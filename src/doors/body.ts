/**
 * A request body, from bytes to plain JSON: UTF-8, well-formed, not too deep, nothing that reaches a
 * prototype. Limit: what the members mean is the route's schema's to say.
 */
import { parse } from "secure-json-parse";
import { ErrandError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** An absent body is `{}`. */
export function parseBody(bytes: ArrayBuffer, contentType: string | undefined): unknown {
  if (bytes.byteLength === 0) return {};
  if (contentType !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    throw new ErrandError("unsupported_media_type", "The body must be JSON.");
  }
  return parseJson(decode(bytes));
}

function decode(bytes: ArrayBuffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ErrandError("invalid_utf8", "The body is not valid UTF-8.");
  }
}

export function parseJson(text: string): unknown {
  if (depthOf(text) > LIMITS.json_depth.value) {
    throw new ErrandError(
      "invalid_request",
      `The body nests deeper than ${LIMITS.json_depth.value} levels.`,
      {
        details: { issues: [{ path: "", reason: `at most ${LIMITS.json_depth.value} levels of nesting` }] },
      },
    );
  }
  try {
    return parse(text, { protoAction: "error", constructorAction: "error" });
  } catch {
    throw new ErrandError("invalid_json", "The body is not well-formed JSON, or has a forbidden member.");
  }
}

/** Counts brackets outside strings, so that a deep body never reaches a recursive parser. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === 0x22) {
      for (i += 1; i < text.length && text.charCodeAt(i) !== 0x22; i += 1) {
        if (text.charCodeAt(i) === 0x5c) i += 1;
      }
    } else if (char === 0x7b || char === 0x5b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (char === 0x7d || char === 0x5d) {
      depth -= 1;
    }
  }
  return deepest;
}
