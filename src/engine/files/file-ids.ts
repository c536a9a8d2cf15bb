/** The ids and URLs of files. */
import { createHash } from "node:crypto";
import type { StoredFile } from "../../schema/file.ts";
import { sha256OfFile } from "../../schema/file-url.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";

/**
 * The mark of a principal in the ids of its files. An agent that is created again has another one: it owns nothing of the
 * deleted agent of its name.
 */
export async function tagOf(
  { agents }: Pick<Broker, "agents">,
  { kind, name, text }: Principal,
): Promise<string> {
  const since = kind === "agent" ? await agents.since(name) : 0;
  return createHash("sha256").update(`${text} ${since}`).digest("hex").slice(0, 16);
}

export const fileIdOf = (tag: string, sha256: string): string => `fil_${tag}_${sha256}`;

/** The mark of the owner, and the hash of the content. */
export const partsOfFileId = (id: string): { readonly tag: string; readonly sha256: string } => ({
  tag: id.slice(4, 20),
  sha256: sha256OfFile(id),
});

/** The URL of a file: of its owner, or of a delegation that names it. */
export function fileUrl({ publicUrl }: Pick<Broker, "publicUrl">, id: string, delegationId?: string): string {
  const path = delegationId === undefined ? "/v1/files/" : `/v1/delegations/${delegationId}/files/`;
  return `${withoutTrailingSlashes(publicUrl())}${path}${id}`;
}

/** What is stored of a file, in the order of the scripts. */
export interface FileRow {
  readonly size: number;
  readonly created_at: number;
  readonly expires_at: number;
}

export function toStoredFile(
  broker: Pick<Broker, "publicUrl">,
  id: string,
  { size, created_at, expires_at }: FileRow,
  delegationId?: string,
): StoredFile {
  return {
    id,
    url: fileUrl(broker, id, delegationId),
    size,
    sha256: sha256OfFile(id),
    created_at: toInstant(created_at),
    expires_at: toInstant(expires_at),
  };
}
