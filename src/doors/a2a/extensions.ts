/**
 * The A2A-Extensions header: what of it is in use is said back, the rest is passed over; a version of ours that is not
 * there is not replaced by another. Limit: one extension of our own, and none that anybody must know, so nobody is refused for want of one.
 */
export const EXTENSION = "urn:errand:a2a:v1";
export const EXTENSION_HEADERS = { "1.0": "A2A-Extensions", "0.3": "X-A2A-Extensions" } as const;

const listed = (header: string | undefined): string[] =>
  (header ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");

/** What of the wishes is in use, as headers of the answer. */
export function activated(
  header: (name: string) => string | undefined,
  version: keyof typeof EXTENSION_HEADERS,
): Record<string, string> {
  const name = EXTENSION_HEADERS[version];
  return listed(header(name.toLowerCase())).includes(EXTENSION) ? { [name]: EXTENSION } : {};
}
