/** A reply that fails the delegation. */
import type { Reply } from "../../client/work.ts";
import { cutBytes } from "./capture.ts";

const ERROR_MAX = 4096;

export function failed(code: string, message: string, retryable = false): Reply {
  return { state: "failed", error: { code, message: cutBytes(message, ERROR_MAX), retryable } };
}
