/** Names for files whose names others chose: never outside the folder, no hidden files, no control characters, none twice. */
import { extname } from "node:path";
import { oneLine } from "./show/output.ts";

/** Below the 255 bytes of common file systems. */
const MAX_BYTES = 200;
const MAX_EXTENSION = 16;
/** Of a path below the folder, well below what systems take. */
const MAX_PATH_BYTES = 500;

/** Gives out names. Two that differ only in case are the same name on some file systems. */
export class FileNames {
  readonly #taken = new Set<string>();
  readonly #folders = new Set<string>();

  /** A name without folders. `fallback` names what has no usable name. */
  next(wanted: string, fallback: string): string {
    return this.#free(safe(wanted) || fallback);
  }

  /** The same path below the folder, with "/", for a file that came from one; for any other name as {@link next}. */
  nextPath(wanted: string, fallback: string): string {
    const steps = wanted.split("/").map(safe);
    const path = steps.join("/");
    const isPlain = steps.every((step) => step !== "") && !/(?:^|\/)\.{1,2}(?:\/|$)/.test(wanted);
    if (!isPlain || Buffer.byteLength(path) > MAX_PATH_BYTES) return this.next(wanted, fallback);
    const above = steps.slice(0, -1).map((_, at) => keyOf(steps.slice(0, at + 1).join("/")));
    if (above.some((folder) => this.#taken.has(folder))) return this.next(wanted, fallback);
    for (const folder of above) this.#folders.add(folder);
    return this.#free(path);
  }

  #free(path: string): string {
    const extension = extname(path);
    const stem = path.slice(0, path.length - extension.length);
    let unique = path;
    const isTaken = () => this.#taken.has(keyOf(unique)) || this.#folders.has(keyOf(unique));
    for (let count = 2; isTaken(); count += 1) unique = `${stem}-${count}${extension}`;
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
