/** The bearer token as it arrives from environments and files, which may add what is no part of it. */
import { localError } from "./errors.ts";

/**
 * The token without a byte order mark and white space around it; undefined if nothing is left. Throws `invalid_token` for
 * one that no HTTP header can have. No message contains it.
 */
export function cleanToken(given: string | undefined): string | undefined {
  const token = given?.trim() || undefined;
  if (token === undefined || /^[!-~]+$/.test(token)) return token;
  throw localError({
    code: "invalid_token",
    category: "AUTH",
    detail: "the token has a character that no token has",
    recovery: quotesHint(token) ?? "Copy it again.",
  });
}

/** Docker's env files, for example, keep the quotes. */
export const quotesHint = (token: string): string | undefined =>
  /^["'`“‘].*["'`”’]$/.test(token) ? "Remove the quotes around the token." : undefined;
