/** The bytes of parts, also of files of the broker, which are checked against the hash in their id. */
import { createHash } from "node:crypto";
import type { Delegator } from "../../client/delegator.ts";
import type { Part } from "../../schema/a2a.ts";
import { fileOfUrl, isStored, sha256OfFile } from "../../schema/file-url.ts";
import { bytesIn } from "../artifacts/content.ts";
import { cliError } from "../failure.ts";

export type Downloads = Pick<Delegator, "download">;

/** One part after the other. Throws at the end of a file whose content is not the one of its id. */
export async function* chunksOf(
  delegator: Downloads,
  parts: readonly Part[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    const bytes = bytesIn(part);
    if (bytes !== undefined) yield bytes;
    else if (isStored(part)) yield* checked(delegator.download(part, { signal }), part.url ?? "");
  }
}

async function* checked(chunks: AsyncIterable<Uint8Array>, url: string): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
  const { file_id = "" } = fileOfUrl(url) ?? {};
  if (hash.digest("hex") !== sha256OfFile(file_id)) throw corrupt(file_id);
}

const corrupt = (id: string) =>
  cliError({
    code: "hash_mismatch",
    category: "UPSTREAM",
    detail: `what arrived of ${id} is not its content`,
    recovery: "Try again. If it stays so, tell the operator: the storage of the broker is damaged.",
    details: { sha256: sha256OfFile(id) },
  });
