/** Escapes in the user and password of a URL. */

export const ESCAPE_PERCENT = "has a % that is not an escape; write it as %25";
export const UNESCAPED =
  "has a / ? or # in front of an @; in a user or password, write / as %2F, ? as %3F, # as %23 and @ as %40";

export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
