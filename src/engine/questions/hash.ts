/** What the ids of questions, requests and messages are made of. */
import { createHash } from "node:crypto";

export const hash = (...parts: readonly string[]): string =>
  createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 32);
