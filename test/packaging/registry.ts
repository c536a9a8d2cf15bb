/**
 * An npm registry with the packages that this project has installed, so that npm itself can install a package into an
 * empty folder without a network. Limit: tarballs are made from node_modules, so their hashes differ from the lock
 * file's.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { z } from "zod";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({ version: z.string().optional(), dev: z.boolean().optional() }),
  ),
});
const manifestSchema = z.looseObject({ version: z.string() });

interface Found {
  readonly folder: string;
  readonly manifest: z.infer<typeof manifestSchema>;
}

/** The production dependencies, by name and version; those of other platforms are known only from the lock file. */
function installed(): Map<string, Map<string, Found>> {
  const lock = lockSchema.parse(JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")));
  const found = new Map<string, Map<string, Found>>();
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === "" || entry.dev) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const folder = join(ROOT, path);
    const file = join(folder, "package.json");
    const manifest = manifestSchema.parse(existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : entry);
    const versions = found.get(name) ?? new Map<string, Found>();
    found.set(name, versions.set(manifest.version, { folder, manifest: { ...manifest, name } }));
  }
  return found;
}

/** Starts the registry and returns its URL; it is closed when the test ends. */
export async function startRegistry(): Promise<string> {
  const packages = installed();
  const server = createServer((request, response) => {
    const [, name = "", version] = decodeURIComponent(request.url ?? "/").split(
      /^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/)?/,
    );
    const versions = packages.get(name);
    if (versions === undefined) return void response.writeHead(404).end("{}");
    if (version) return sendTarball(response, versions.get(version)?.folder);
    const newest = [...versions.keys()].at(-1);
    const listed = [...versions].map(([number, { manifest }]) => [
      number,
      { ...manifest, dist: { tarball: `http://${request.headers.host}/${name}/-/${number}` } },
    ]);
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ name, "dist-tags": { latest: newest }, versions: Object.fromEntries(listed) }),
    );
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}

function sendTarball(response: ServerResponse, folder: string | undefined): void {
  if (folder === undefined || !existsSync(folder)) return void response.writeHead(404).end();
  const from = ["-C", dirname(folder), "--exclude=node_modules", basename(folder)];
  const tar = spawn("tar", ["-czf", "-", ...from], { stdio: ["ignore", "pipe", "inherit"] });
  tar.stdout.pipe(response);
}
