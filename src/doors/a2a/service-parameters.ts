/**
 * A2A's service parameters of a request. Its version is in the header, or else the query parameter: only major and minor
 * count, and absent or empty means 0.3, as the specification says. Of its extensions, every response repeats those that
 * are active, and ignores unknown ones. The broker has one extension, in one version, and requires none.
 */
import { VersionNotSupportedError } from "@a2a-js/sdk/errors";

export const SUPPORTED = ["1.0", "0.3"] as const;
export type Version = (typeof SUPPORTED)[number];

/** The requested version if it is supported; else null. */
export function parseVersion(header: string | undefined, parameter: string | undefined): Version | null {
  const minor = /^(\d{1,4}\.\d{1,4})(?:\.\d+)*$/.exec((header || parameter || "").trim())?.[1];
  return SUPPORTED.find((version) => version === minor) ?? null;
}

/** The version in whose form errors are written, also when the requested version is not supported. */
export const errorVersion = (header: string | undefined, parameter: string | undefined): Version =>
  (header || parameter || "").trim() === "" ? "0.3" : (parseVersion(header, parameter) ?? "1.0");

/** Throws for an unsupported version. */
export function requireVersion(header: string | undefined, parameter: string | undefined): Version {
  if ((header || parameter || "").trim() === "") return "0.3";
  const found = parseVersion(header, parameter);
  if (found) return found;
  throw new VersionNotSupportedError({
    message: `This version of A2A is not supported. Send A2A-Version: ${SUPPORTED.join(" or ")}.`,
    metadata: { supportedVersions: SUPPORTED.join(",") },
  });
}

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
