/**
 * The A2A-Extensions header: the response lists the requested extensions that are active, and unknown ones are ignored.
 * The broker has one extension, in one version, and requires none.
 */
export const EXTENSION = "urn:errand:a2a:v1";
export const EXTENSION_HEADERS = { "1.0": "A2A-Extensions", "0.3": "X-A2A-Extensions" } as const;

const parseList = (header: string | undefined): string[] =>
  (header ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");

/** Response headers that list the active extensions. */
export function activatedExtensions(
  header: (name: string) => string | undefined,
  version: keyof typeof EXTENSION_HEADERS,
): Record<string, string> {
  const name = EXTENSION_HEADERS[version];
  return parseList(header(name.toLowerCase())).includes(EXTENSION) ? { [name]: EXTENSION } : {};
}
