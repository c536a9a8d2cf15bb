/**
 * The A2A-Extensions header: every response repeats the requested extensions that are active, and unknown ones are
 * ignored. The broker has one extension, in one version, and requires none, so a request without the header is complete.
 */

/** A new version for every change that a client must know of. `v1` had snake_case names. */
export const EXTENSION = "urn:errand:a2a:v2";
/** The second is that of 0.3. Either is read in both versions, and answered under the same name. */
const EXTENSION_HEADERS = ["A2A-Extensions", "X-A2A-Extensions"] as const;

const parseList = (header: string | undefined): string[] =>
  (header ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");

/** Response headers that list the active extensions. */
export function activatedExtensions(header: (name: string) => string | undefined): Record<string, string> {
  return Object.fromEntries(
    EXTENSION_HEADERS.filter((name) => parseList(header(name.toLowerCase())).includes(EXTENSION)).map(
      (name) => [name, EXTENSION],
    ),
  );
}
