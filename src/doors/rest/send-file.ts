/**
 * Answers with the bytes of a file. They are never a page of the broker's origin: they are saved, not shown, their type is
 * that of bytes, and a browser that shows them all the same runs nothing in them.
 */
import type { Found } from "../../engine/files/download.ts";
import { requireFiles } from "../../engine/files/files.ts";
import { ErrandError } from "../../schema/errors.ts";
import { sha256OfFile } from "../../schema/file-url.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { rangeOf } from "../http/byte-range.ts";
import { ByteResponse } from "../http/byte-response.ts";
import { TextResponse } from "../http/text-response.ts";

export function sendFile(
  request: AuthenticatedRequest,
  id: string,
  { name, size }: Pick<Found, "name" | "size">,
): ByteResponse | TextResponse {
  const sha256 = sha256OfFile(id);
  const etag = `"${sha256}"`;
  const headers = {
    "content-type": "application/octet-stream",
    "content-disposition": `attachment; filename="${sha256}"`,
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
    "accept-ranges": "bytes",
    etag,
    "repr-digest": `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`,
  };
  if (request.header("if-none-match") === etag) return new TextResponse(304, null, { etag });
  const isSame = (request.header("if-range") ?? etag) === etag;
  const range = isSame ? rangeOf(request.header("range"), size) : null;
  if (range === "unsatisfiable") {
    throw new ErrandError(
      "range_not_satisfiable",
      `The file has ${size} bytes; the range begins beyond them.`,
      {
        details: { size },
      },
    );
  }
  const length = range ? range.last - range.first + 1 : size;
  const { store } = requireFiles(request.broker);
  const scope = request.openScope("transfers");
  const { signal } = scope;
  return new ByteResponse(
    range ? 206 : 200,
    {
      ...headers,
      "content-length": String(length),
      ...(range && { "content-range": `bytes ${range.first}-${range.last}/${size}` }),
    },
    {
      open: async () => {
        const bytes = await store.read(name, range ?? undefined);
        signal.addEventListener("abort", () => bytes.destroy(new Error("the request has ended")), {
          once: true,
        });
        if (signal.aborted) bytes.destroy(new Error("the request has ended"));
        return bytes;
      },
      close: () => scope.release(),
    },
  );
}
