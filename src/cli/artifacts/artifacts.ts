/** `errand get --artifact` and `--artifacts`: a delegation's artifacts as files. */
import { join } from "node:path";
import type { Artifact, Part } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type CliError, cliError, usageError } from "../failure.ts";
import { FileNames } from "../file-names.ts";
import { chunksOf, type Downloads } from "../files/download-file.ts";
import type { CliHost } from "../host.ts";
import { isText } from "../is-text.ts";
import { note, oneLine, plainText, print, printJson, write } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import { interruptible } from "../signals.ts";
import { contentsOf, sizeOf, urlsElsewhere } from "./content.ts";
import { fileExists, isTaken, makeFolder, saveFile } from "./save-file.ts";

export interface ArtifactOptions {
  readonly artifact?: string;
  readonly artifacts?: string;
  /** A path, or `-` for stdout. */
  readonly output?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function checkArtifactOptions({ artifact, artifacts, output, force, json }: ArtifactOptions): void {
  if (artifact !== undefined && artifacts !== undefined)
    throw usageError("give either --artifact or --artifacts");
  if (output !== undefined && artifact === undefined) throw usageError("--output requires --artifact");
  const isFile = artifacts !== undefined || (output !== undefined && output !== "-");
  if (force && !isFile) throw usageError("--force requires --artifacts, or --artifact with --output");
  if (json && artifact !== undefined && !isFile)
    throw usageError("--artifact with --json requires --output with a file");
}

/** Gives the bytes of parts. */
type Load = (parts: readonly Part[]) => AsyncIterable<Uint8Array>;

/** Writes one artifact to a file or stdout, or all to a folder. */
export async function saveArtifacts(
  host: CliHost,
  delegator: Downloads,
  delegation: Delegation,
  options: ArtifactOptions,
): Promise<void> {
  const { artifact, artifacts: folder } = options;
  await interruptible(async (signal) => {
    const load: Load = (parts) => chunksOf(delegator, parts, signal);
    if (folder !== undefined) return saveAll(host, load, delegation, folder, options);
    await saveOne(host, load, artifactNamed(delegation, artifact ?? ""), options);
  });
}

/** More than anybody reads on a terminal. */
const SHOWN_BYTES = 4 * 1024 * 1024;

async function saveOne(host: CliHost, load: Load, found: Artifact, options: ArtifactOptions): Promise<void> {
  const { output = "-", force = false, json } = options;
  const { parts } = found;
  if (output !== "-") {
    const bytes = await saveFile(output, load(parts), force);
    return report(host, found, output, { parts, bytes }, json);
  }
  if (host.isTty.stdout && options.output === undefined) await show(host, load, parts);
  else for await (const chunk of load(parts)) await write(host.stdout, chunk);
  await noteElsewhere(host, urlsElsewhere(parts));
}

async function show(host: CliHost, load: Load, parts: readonly Part[]): Promise<void> {
  const unshown = (what: string) => usageError(`the artifact ${what}`, "Pass --output <path>.");
  if (sizeOf(parts) > SHOWN_BYTES) throw unshown("is too large for a terminal");
  const chunks: Uint8Array[] = [];
  for await (const chunk of load(parts)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (!isText(bytes)) throw unshown("has bytes that would garble a terminal");
  // On a terminal, nothing in the text controls it.
  await write(host.stdout, plainText(bytes.toString()));
}

async function saveAll(
  host: CliHost,
  load: Load,
  { id, artifacts }: Delegation,
  folder: string,
  { force = false, json }: ArtifactOptions,
): Promise<void> {
  if (artifacts.length === 0 && !json) return note(host, `${id} has no artifacts.`);
  await makeFolder(folder);
  const names = new FileNames();
  const files = artifacts.flatMap((artifact) =>
    contentsOf(artifact).map((content) => ({
      artifact,
      content,
      path: join(folder, names.next(content.name, "artifact")),
    })),
  );
  // Checked before the first write, so that one existing file does not leave half of the artifacts saved.
  if (!force) for (const { path } of files) if (await isTaken(path)) throw fileExists(path);
  for (const { artifact, content, path } of files) {
    const bytes = await saveFile(path, load(content.parts), force);
    await report(host, artifact, path, { ...content, bytes }, json);
  }
}

async function report(
  host: CliHost,
  { artifactId: artifact_id, name }: Artifact,
  path: string,
  { parts, bytes }: { readonly parts: readonly Part[]; readonly bytes: number },
  json = false,
): Promise<void> {
  const urls = urlsElsewhere(parts);
  if (json) return printJson(host, { artifact_id, name, path, bytes, urls });
  await print(host, `${path} (${sizeText(bytes)})`);
  await noteElsewhere(host, urls);
}

async function noteElsewhere(host: CliHost, urls: readonly string[]): Promise<void> {
  for (const url of urls) await note(host, `a part of it is elsewhere: ${oneLine(url)}`);
}

/** By its id, or by a name that no other has. */
function artifactNamed({ id, artifacts }: Delegation, wanted: string): Artifact {
  const byId = artifacts.find(({ artifactId }) => artifactId === wanted);
  const named = artifacts.filter(({ name }) => name === wanted);
  const [only, ...others] = byId ? [byId] : named;
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) throw ambiguousArtifact(id, wanted, named);
  throw artifactNotFound(id, wanted, artifacts);
}

function artifactNotFound(id: string, wanted: string, artifacts: readonly Artifact[]): CliError {
  const has = artifacts.map(({ name, artifactId }) => oneLine(name ?? artifactId, 60)).join(", ");
  return cliError({
    code: "artifact_not_found",
    status: 404,
    category: "UPSTREAM",
    detail: `${id} has no artifact '${oneLine(wanted, 60)}'`,
    recovery: has === "" ? "It has no artifacts." : `It has: ${has}.`,
  });
}

function ambiguousArtifact(id: string, wanted: string, named: readonly Artifact[]): CliError {
  const ids = named.map(({ artifactId }) => oneLine(artifactId, 60));
  return cliError({
    code: "ambiguous_artifact",
    category: "PROTOCOL",
    detail: `${id} has ${named.length} artifacts named '${oneLine(wanted, 60)}'`,
    recovery: `Pass the id of one: ${ids.join(", ")}. Or save all with --artifacts <folder>.`,
    details: { artifact_ids: named.map(({ artifactId }) => artifactId) },
  });
}
