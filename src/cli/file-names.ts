/** Names for files whose names others chose: no folders, no hidden files, no control characters, none twice. */
import { extname } from "node:path";
import { oneLine } from "./show/output.ts";

/** Below the 255 bytes of common file systems. */
const MAX_BYTES = 200;
const MAX_EXTENSION = 16;

/** Gives out names. Two that differ only in case are the same name on some file systems. */
export class FileNames {
  readonly #taken = new Set<string>();

  /** `fallback` names what has no usable name. */
  next(wanted: string, fallback: string): string {
    const name = safe(wanted) || fallback;
    const extension = extname(name);
    const stem = name.slice(0, name.length - extension.length);
    let unique = name;
    for (let count = 2; this.#taken.has(keyOf(unique)); count += 1) unique = `${stem}-${count}${extension}`;
    this.#taken.add(keyOf(unique));
    return unique;
  }
}

const keyOf = (name: string): string => name.normalize("NFC").toLowerCase();

function safe(wanted: string): string {
  const name = oneLine(wanted)
    .replace(/[/\\:*?"<>|]/g, "_")
    .replace(/^[.\s-]+/, "");
  const { length } = extname(name);
  const extension = length > MAX_EXTENSION || length === 0 ? "" : name.slice(-length);
  const stem = name.slice(0, name.length - extension.length);
  return shortened(stem, MAX_BYTES - Buffer.byteLength(extension)) + extension;
}

function shortened(stem: string, maxBytes: number): string {
  let kept = "";
  for (const character of stem) {
    if (Buffer.byteLength(kept + character) > maxBytes) break;
    kept += character;
  }
  return kept;
}
