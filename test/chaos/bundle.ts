/** Bundles what the processes run, so that each starts in a moment. Limit: gateways run the build in dist. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** Into that directory; the paths of the bundles. */
export async function bundle(directory: string): Promise<{ role: string; preload: string }> {
  const role = join(directory, "role.mjs");
  const preload = join(directory, "preload.mjs");
  const common = {
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
  } as const;
  // Packages written for require find one.
  const banner = {
    js: 'import { createRequire as chaosRequire } from "node:module"; const require = chaosRequire(import.meta.url);',
  };
  await Promise.all([
    build({ ...common, banner, entryPoints: [join(HERE, "roles/main.ts")], outfile: role }),
    build({ ...common, entryPoints: [join(HERE, "preload.ts")], outfile: preload }),
  ]);
  return { role, preload };
}
