/** `errand get --artifact` and `--artifacts`: a delegation's artifacts as files. */
import { join } from "node:path";
import type { Artifact } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type CliError, cliError, usageError } from "../failure.ts";
import { FileNames } from "../file-names.ts";
import type { CliHost } from "../host.ts";
import { isText } from "../is-text.ts";
import { note, oneLine, plainText, print, printJson, write } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import { type Content, contentsOf, joined } from "./content.ts";
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

/** Writes one artifact to a file or stdout, or all to a folder. */
export async function saveArtifacts(
  host: CliHost,
  delegation: Delegation,
  options: ArtifactOptions,
): Promise<void> {
  const { artifact, artifacts: folder } = options;
  if (folder !== undefined) return saveAll(host, delegation, folder, options);
  const found = artifactNamed(delegation, artifact ?? "");
  await saveOne(host, found, options);
}

async function saveOne(host: CliHost, found: Artifact, options: ArtifactOptions): Promise<void> {
  const { output = "-", force = false } = options;
  const bytes = joined(found.parts);
  const urls = found.parts.flatMap(({ url }) => url ?? []);
  if (output !== "-") {
    await saveFile(output, bytes, force);
    await report(host, found, output, { name: output, bytes, urls }, options.json);
    return;
  }
  const isShown = host.isTty.stdout && options.output === undefined;
  if (isShown && !isText(bytes))
    throw usageError("the artifact has bytes that would garble a terminal", "Pass --output <path>.");
  // On a terminal, nothing in the text controls it.
  await write(host.stdout, isShown ? plainText(bytes.toString()) : bytes);
  await noteElsewhere(host, urls);
}

async function saveAll(
  host: CliHost,
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
    await saveFile(path, content.bytes, force);
    await report(host, artifact, path, content, json);
  }
}

async function report(
  host: CliHost,
  { artifactId: artifact_id, name }: Artifact,
  path: string,
  { bytes, urls }: Content,
  json = false,
): Promise<void> {
  if (json) return printJson(host, { artifact_id, name, path, bytes: bytes.length, urls });
  await print(host, `${path} (${sizeText(bytes.length)})`);
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
