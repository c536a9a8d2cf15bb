/**
 * Messages and artifacts name files by their URLs. Before a move stores one, its files are bound to the delegation, so that
 * they last as long, and the URLs become those of this delegation. Limit: Redis may keep the two in different slots, so
 * the file is bound first; if the move does not happen, the upkeep finds no such record and lets the file go.
 */
import type { Part } from "../../schema/a2a.ts";
import { ErrandError } from "../../schema/errors.ts";
import { fileOfUrl } from "../../schema/file-url.ts";
import { LIMITS } from "../../schema/limits.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import type { Principal } from "../access/access.ts";
import type { Reads } from "../broker.ts";
import { read } from "../delegations/read.ts";
import { findFileOf, findOwnFile } from "./download.ts";
import { fileNotFound, tooManyFiles } from "./file-errors.ts";
import { fileUrl, partsOfFileId, tagOf } from "./file-ids.ts";
import { nowOf, requireFiles, type UsesFiles } from "./files.ts";
import { scripts, textsIn } from "./scripts.ts";

interface WithParts {
  readonly parts?: readonly Part[] | null | undefined;
}

/** To store contents that name files. */
export type NamesFiles = UsesFiles & Reads;

interface NamingOptions {
  /** The delegation does not exist yet. */
  readonly isNew?: boolean;
  /** Of the lease whose holder sends the contents. */
  readonly fence?: number;
}

interface Named {
  readonly file_id: string;
  /** The delegation that the URL is of; undefined: the file is the principal's own. */
  readonly delegation_id: string | undefined;
  /** The URL is below the public URL of the broker, or a path. Otherwise it may be another broker's. */
  readonly isOurs: boolean;
}

/**
 * The same contents with the URLs of this delegation, and the sizes of the files. Throws `file_not_found` for a file that
 * the principal may not read. (Not async: most contents name no file.)
 */
export function nameFiles<T extends WithParts>(
  broker: NamesFiles,
  principal: Principal,
  id: string,
  contents: readonly T[],
  options: NamingOptions = {},
): readonly T[] | Promise<readonly T[]> {
  const named = contents.flatMap(({ parts }) => (parts ?? []).flatMap((part) => namedBy(broker, part) ?? []));
  if (named.length === 0) return contents;
  return bindKnown(broker, principal, id, named, options).then((sizes) =>
    contents.map((content) =>
      content.parts
        ? { ...content, parts: content.parts.map((part) => renamed(broker, id, sizes, part)) }
        : content,
    ),
  );
}

/** {@link nameFiles} for one content. */
export async function nameFilesOf<T extends WithParts>(
  broker: NamesFiles,
  principal: Principal,
  id: string,
  content: T,
  options?: NamingOptions,
): Promise<T> {
  const [named = content] = await nameFiles(broker, principal, id, [content], options);
  return named;
}

/** {@link nameFiles} for the message and the artifacts of one request. */
export async function nameFilesIn<
  T extends {
    readonly message?: WithParts | undefined;
    readonly artifacts?: readonly WithParts[] | undefined;
  },
>(broker: NamesFiles, principal: Principal, id: string, request: T, options?: NamingOptions): Promise<T> {
  const { message, artifacts } = request;
  const contents = [...(message ? [message] : []), ...(artifacts ?? [])];
  const named = await nameFiles<WithParts>(broker, principal, id, contents, options);
  // Most requests name no file.
  if (named === contents) return request;
  return {
    ...request,
    ...(message && { message: named[0] }),
    ...(artifacts && { artifacts: named.slice(message ? 1 : 0) }),
  };
}

/** A file of a broker. */
function namedBy({ publicUrl }: UsesFiles, { url }: Part): Named | undefined {
  if (url === undefined) return undefined;
  const named = fileOfUrl(url);
  if (named === undefined) return undefined;
  const base = withoutTrailingSlashes(publicUrl());
  return { ...named, isOurs: url.startsWith("/v1/") || url.startsWith(`${base}/v1/`) };
}

/**
 * Clients know a broker by other addresses than its public URL, and messages have the one that it had before. So a URL of
 * another address names a file if it is one that the principal may read here; otherwise it stays a link.
 */
async function bindKnown(
  broker: NamesFiles,
  principal: Principal,
  id: string,
  named: readonly Named[],
  options: NamingOptions,
): Promise<ReadonlyMap<string, number>> {
  const isKnown = await Promise.all(
    named.map((one) => one.isOurs || (broker.files !== null && mayRead(broker, principal, one))),
  );
  const known = named.filter((_, at) => isKnown[at]);
  return known.length === 0 ? new Map() : bind(broker, principal, id, known, options);
}

const NOT_READABLE: readonly string[] = ["file_not_found", "delegation_not_found"];

const mayRead = (
  broker: NamesFiles,
  principal: Principal,
  { file_id, delegation_id }: Named,
): Promise<boolean> =>
  (delegation_id === undefined
    ? findOwnFile(broker, principal, file_id)
    : findFileOf(broker, principal, delegation_id, file_id)
  ).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ErrandError && NOT_READABLE.includes(error.code)) return false;
      throw error;
    },
  );

/** Returns the size of each file by its id. */
async function bind(
  broker: NamesFiles,
  principal: Principal,
  id: string,
  named: readonly Named[],
  { isNew = false, fence }: NamingOptions,
): Promise<ReadonlyMap<string, number>> {
  requireFiles(broker);
  const own = await tagOf(broker, principal);
  const files = [...new Map(named.map((one) => [one.file_id, one] as const)).values()];
  for (const { file_id, delegation_id } of files) {
    if (delegation_id === undefined && partsOfFileId(file_id).tag !== own) throw fileNotFound(file_id);
  }
  const others = new Set(files.flatMap(({ delegation_id }) => delegation_id ?? []));
  // Nobody binds files to a delegation of others.
  if (isNew) others.delete(id);
  else others.add(id);
  const records = await Promise.all([...others].map((other) => read(broker, principal, other)));
  const target = records.find((record) => record.id === id);
  // The move will be refused, so it binds nothing.
  if (fence !== undefined && (target?.finished || target?.get("fence") !== fence)) return new Map();
  const args = files.flatMap(({ file_id, delegation_id = "" }) => {
    const { tag, sha256 } = partsOfFileId(file_id);
    return [tag, sha256, delegation_id];
  });
  const [missing, ...sizes] =
    textsIn(await scripts.pin(broker.redis, id, nowOf(broker), LIMITS.delegation_files.value, ...args))?.map(
      Number,
    ) ?? [];
  if (missing === -1) throw tooManyFiles(id);
  const first = missing ? files[missing - 1] : undefined;
  if (first) throw fileNotFound(first.file_id);
  return new Map(files.map(({ file_id }, at) => [file_id, sizes[at] ?? 0]));
}

function renamed(broker: UsesFiles, id: string, sizes: ReadonlyMap<string, number>, part: Part): Part {
  const named = namedBy(broker, part);
  if (!named) return part;
  const size = sizes.get(named.file_id);
  if (size === undefined) return part;
  const { filename, mediaType, ...rest } = part;
  return {
    ...rest,
    url: fileUrl(broker, named.file_id, id),
    ...(filename !== undefined && { filename: safeName(filename) }),
    ...(mediaType !== undefined && { mediaType: MEDIA_TYPE.test(mediaType) ? mediaType : BYTES }),
    metadata: { ...part.metadata, size },
  };
}

const BYTES = "application/octet-stream";
/** A type, and parameters of printable characters. */
const MEDIA_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:;[\x20-\x7e]{0,200})?$/;

/** A relative path without steps upwards and without control characters: a file saved by this name stays in its folder. */
export function safeName(filename: string): string {
  const steps = filename
    .replaceAll(/\p{Cc}/gu, "")
    .replaceAll("\\", "/")
    .split("/");
  return steps.filter((step) => step !== "" && step !== "." && step !== "..").join("/") || "file";
}
