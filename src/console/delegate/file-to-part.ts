import type { Part } from "../../schema/a2a.ts";

/** A file as a part of a message. */
export async function partOf(file: File): Promise<Part> {
  return {
    raw: base64(new Uint8Array(await file.arrayBuffer())),
    mediaType: file.type || "application/octet-stream",
    filename: file.name,
  };
}

/** Every browser accepts this many arguments in one call. */
const CHUNK = 8192;

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK)
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}
