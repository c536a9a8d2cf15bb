/** The headers of uploads, as the tus protocol names them. */
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";

type Headers = Pick<AuthenticatedRequest, "header">;

/** Throws `invalid_request` for anything but a whole number. */
function numberIn(request: Headers, name: string): number | undefined {
  const value = request.header(name.toLowerCase());
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value.trim())) return Number(value);
  throw refuse(name, "is not a whole number of bytes");
}

const refuse = (name: string, reason: string): ErrandError =>
  new ErrandError("invalid_request", `${name} ${reason}`, { details: { issues: [{ path: name, reason }] } });

/** How many bytes the body has; undefined: not known. */
export const contentLength = (request: Headers): number | undefined => numberIn(request, "Content-Length");

export const lengthOf = (request: Headers): number | undefined => numberIn(request, "Upload-Length");

/** How many bytes the upload will have; undefined: it will say so later. */
export function announcedLength(request: Headers): number | undefined {
  const length = lengthOf(request);
  const isDeferred = request.header("upload-defer-length")?.trim() === "1";
  if (length === undefined && !isDeferred)
    throw refuse(
      "Upload-Length",
      "is missing: say how many bytes there will be, or send Upload-Defer-Length: 1",
    );
  return length;
}

export function offsetOf(request: Headers): number {
  const offset = numberIn(request, "Upload-Offset");
  if (offset === undefined) throw refuse("Upload-Offset", "is missing: say where the bytes begin");
  return offset;
}

/** A form would be stored with its boundaries, as no program expects it. */
export function requireContent(request: Headers): void {
  if (!/^\s*multipart\/form-data\b/i.test(request.header("content-type") ?? "")) return;
  throw new ErrandError(
    "unsupported_media_type",
    "The body is a form; the content of a file is sent as it is.",
    {
      recovery: "Send only the bytes of the file: with curl by '--data-binary @FILE' instead of '-F'.",
    },
  );
}
