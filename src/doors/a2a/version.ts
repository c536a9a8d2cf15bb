/**
 * The A2A version of a request: from the header, or else the query parameter. Only major and minor count; absent or
 * empty means 0.3, as the specification says.
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
