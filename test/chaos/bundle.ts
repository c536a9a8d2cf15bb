/** Bundles the programs of the harness's processes, so that each starts quickly. Gateways run the program in dist. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** Writes the bundles into this directory; returns their paths. */
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
  // Packages that call `require` find one.
  const banner = {
    js: 'import { createRequire as chaosRequire } from "node:module"; const require = chaosRequire(import.meta.url);',
  };
  await Promise.all([
    build({ ...common, banner, entryPoints: [join(HERE, "roles/main.ts")], outfile: role }),
    build({ ...common, entryPoints: [join(HERE, "preload.ts")], outfile: preload }),
  ]);
  return { role, preload };
}
