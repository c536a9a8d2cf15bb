/** Installs the generators. */
import { fileURLToPath } from "node:url";
import { cachedInstall } from "../support/cached-install.ts";

/** The folder that has `node_modules`. */
export const installGenerators = (): Promise<string> =>
  cachedInstall("openapi-clients", fileURLToPath(new URL("./", import.meta.url)));
