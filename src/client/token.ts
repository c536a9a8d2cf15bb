/** The bearer token as it arrives from environments and files, which may add what is no part of it. */
import { localError } from "./errors.ts";

/**
 * The token without a byte order mark and white space around it; undefined if nothing is left. Throws `invalid_token` for
 * one that no HTTP header can have. `from` says where it comes from. No message contains it.
 */
export function cleanToken(given: string | undefined, from: string): string | undefined {
  const token = given?.trim() || undefined;
  const damage = token === undefined ? undefined : damageOf(token);
  if (damage === undefined) return token;
  throw localError({
    code: "invalid_token",
    category: "AUTH",
    detail: `the token from ${from} ${damage.what}`,
    recovery: damage.remedy,
  });
}

/** What is wrong with a token that no HTTP header can have, and what to do. */
export function damageOf(token: string): { readonly what: string; readonly remedy: string } | undefined {
  if (/^[!-~]+$/.test(token)) return undefined;
  if (/^(?:authorization:\s*)?bearer\s/i.test(token))
    return { what: "begins with 'Bearer'", remedy: "Pass only what follows that word." };
  const quotes = quotesHint(token);
  if (quotes !== undefined) return { what: "is in quotes", remedy: quotes };
  if (/[\r\n]/.test(token)) return { what: "has more than one line", remedy: "Pass only the token." };
  if (/\s/.test(token)) return { what: "has white space in it", remedy: AGAIN };
  if (/[\0\uFFFD]/.test(token))
    return { what: "is not UTF-8 text", remedy: "Save it as UTF-8; in PowerShell: Out-File -Encoding utf8." };
  const at = token.search(/[^!-~]/) + 1;
  return { what: `has a character at position ${at} that no token has`, remedy: AGAIN };
}

const AGAIN = "Copy it again, without what is around it.";

/** Docker's env files, for example, keep the quotes. */
export const quotesHint = (token: string): string | undefined =>
  /^["'`“‘].*["'`”’]$/.test(token) ? "Remove the quotes around the token." : undefined;
