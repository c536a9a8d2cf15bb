/**
 * Answers with the bytes of a file. They are never a page of the broker's origin: they are saved, not shown, their type is
 * that of bytes, and a browser that shows them all the same runs nothing in them.
 */
import type { Found } from "../../engine/files/download.ts";
import { requireFiles } from "../../engine/files/files.ts";
import type { ByteRange } from "../../engine/files/store.ts";
import { ErrandError } from "../../schema/errors.ts";
import { sha256OfFile } from "../../schema/file-url.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
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

/**
 * The range of a Range header (RFC 9110, 14.2); null: the whole is asked for, or several ranges. `unsatisfiable`: it begins
 * beyond the end.
 */
function rangeOf(header: string | undefined, size: number): ByteRange | null | "unsatisfiable" {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? [];
  if (from === undefined || to === undefined || (from === "" && to === "")) return null;
  if (from === "")
    return Number(to) === 0 || size === 0
      ? "unsatisfiable"
      : { first: Math.max(0, size - Number(to)), last: size - 1 };
  const first = Number(from);
  const last = to === "" ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== "" && Number(to) < first) return null;
  return first >= size ? "unsatisfiable" : { first, last };
}
