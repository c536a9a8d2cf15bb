/**
 * Which version of A2A a request speaks: the header, or else the query parameter, by major and minor alone; absent or
 * empty means 0.3. Limit: what is neither 1.0 nor 0.3 is refused.
 */
import { VersionNotSupportedError } from "@a2a-js/sdk/errors";

export type Version = "1.0" | "0.3";

const SUPPORTED = ["1.0", "0.3"] as const;

/** The version that is named, where it is one of ours; null where it is none, or none is named. */
export function versionNamed(header: string | undefined, parameter: string | undefined): Version | null {
  const minor = /^(\d{1,4}\.\d{1,4})(?:\.\d+)*$/.exec((header || parameter || "").trim())?.[1];
  return SUPPORTED.find((version) => version === minor) ?? null;
}

/** In whose form a refusal is written, whatever it refuses. */
export const formFor = (header: string | undefined, parameter: string | undefined): Version =>
  (header || parameter || "").trim() === "" ? "0.3" : (versionNamed(header, parameter) ?? "1.0");

/** Throws for a version that is none of ours. */
export function versionOf(header: string | undefined, parameter: string | undefined): Version {
  if ((header || parameter || "").trim() === "") return "0.3";
  const found = versionNamed(header, parameter);
  if (found) return found;
  throw new VersionNotSupportedError({
    message: `This version of A2A is not supported; send A2A-Version: ${SUPPORTED.join(" or ")}.`,
    metadata: { supportedVersions: SUPPORTED.join(",") },
  });
}
