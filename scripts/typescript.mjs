/**
 * Lets Node run TypeScript by esbuild, which the broker's build needs anyway: `node --import ./scripts/typescript.mjs
 * FILE.ts`. Types are not checked.
 */
import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

// Node runs the hooks, of which this file has one, in a thread of their own.
if (isMainThread) register(import.meta.url);

export async function load(url, context, next) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return next(url, context);
  const { transform } = await import("esbuild");
  const options = { loader: "ts", format: "esm", target: "node20.19", sourcefile: fileURLToPath(url) };
  const { code } = await transform(await readFile(new URL(url)), { ...options, sourcemap: "inline" });
  return { format: "module", shortCircuit: true, source: code };
}
