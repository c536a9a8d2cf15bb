/**
 * Which version of A2A a request speaks: the header, or else the query parameter, by major and minor alone; absent or
 * empty means 0.3. Limit: what is neither 1.0 nor 0.3 is refused.
 */
import { VersionNotSupportedError } from "@a2a-js/sdk/errors";

export type Version = "1.0" | "0.3";

const SUPPORTED = ["1.0", "0.3"] as const;

export function versionOf(header: string | undefined, parameter: string | undefined): Version {
  const asked = (header || parameter || "").trim();
  if (asked === "") return "0.3";
  const minor = /^(\d{1,4}\.\d{1,4})(?:\.\d+)*$/.exec(asked)?.[1];
  const found = SUPPORTED.find((version) => version === minor);
  if (found) return found;
  throw new VersionNotSupportedError({
    message: `This version of A2A is not supported; send A2A-Version: ${SUPPORTED.join(" or ")}.`,
    metadata: { supportedVersions: SUPPORTED.join(",") },
  });
}
