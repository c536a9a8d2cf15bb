/** Files of delegations as MCP resources: results link to them, and a client reads the small ones here. */
import type { ReadResourceResult } from "@modelcontextprotocol/server";
import { findFileOf } from "../../engine/files/download.ts";
import { requireFiles } from "../../engine/files/files.ts";
import type { Part } from "../../schema/a2a.ts";
import { ErrandError } from "../../schema/errors.ts";
import { fileOfUrl, sha256OfFile, sizeOfStored } from "../../schema/file-url.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";

/** A model can read no more of it; programs download it. */
const MOST_BYTES = 1024 * 1024;

export interface ResourceLink {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly mimeType?: string;
  readonly size?: number;
}

/** A link to the file that the part names; undefined if it names none of a broker. */
export function linkTo({ url, filename, mediaType, metadata }: Part): ResourceLink | undefined {
  const file = url === undefined ? undefined : fileOfUrl(url);
  if (!file || url === undefined) return undefined;
  const size = sizeOfStored({ metadata });
  return {
    type: "resource_link",
    uri: url,
    name: filename ?? sha256OfFile(file.file_id),
    ...(mediaType !== undefined && { mimeType: mediaType }),
    ...(size !== undefined && { size }),
  };
}

export const resourceTemplates = (publicUrl: string) => [
  {
    name: "file",
    title: "File of a delegation",
    uriTemplate: `${withoutTrailingSlashes(publicUrl)}/v1/delegations/{delegation_id}/files/{file_id}`,
    description: "A file that a message or an artifact of the delegation names. Results link to it.",
  },
];

/** Throws `payload_too_large` for a file that is too large for a model. */
export async function readResource(
  { broker, principal }: AuthenticatedRequest,
  uri: string,
): Promise<ReadResourceResult> {
  const { delegation_id, file_id } = fileOfUrl(uri) ?? {};
  if (delegation_id === undefined || file_id === undefined) {
    throw new ErrandError("not_found", "There is no such resource.", {
      recovery: "Read the resources that results link to.",
    });
  }
  const { name, size } = await findFileOf(broker, principal, delegation_id, file_id);
  if (size > MOST_BYTES) {
    throw new ErrandError(
      "payload_too_large",
      `The file has ${size} bytes; ${MOST_BYTES} can be read here.`,
      {
        details: { size, max_bytes: MOST_BYTES },
        recovery: `Download it with your token: GET ${uri}`,
      },
    );
  }
  const chunks: Buffer[] = [];
  for await (const chunk of await requireFiles(broker).store.read(name)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const text = textIn(bytes);
  return { contents: [text === undefined ? { uri, blob: bytes.toString("base64") } : { uri, text }] };
}

/** The bytes as text; undefined if they are none. */
function textIn(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
