/** The bytes of a file: from base64, their number in words, and a name under which they can be saved. */

/** Null: it is not base64. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64.replaceAll("-", "+").replaceAll("_", "/")), (char) =>
      char.charCodeAt(0),
    );
  } catch {
    return null;
  }
}

/** The text that the bytes are; null if they are none. */
export function textIn(base64: string): string | null {
  const bytes = bytesOf(base64);
  try {
    return bytes && new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** How many bytes base64 stands for. */
export const bytesIn = (base64: string): number => Math.floor((base64.replace(/=+$/, "").length * 3) / 4);

export const textBytes = (text: string): number => new TextEncoder().encode(text).length;

/** `812 bytes`, `4.2 kB` */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  // 999 960 bytes are not 1000.0 kB.
  return bytes < 999_950 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const MAX_NAME = 100;
/** The names of devices, which Windows takes for no file. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * A name for a download: no path, nothing that a system forbids in names or that turns letters round, not hidden, and
 * not too long. Without an ending it gets the given one.
 */
export function safeName(name: string, ending: string): string {
  const plain = (name.split(/[\\/]/).findLast((part) => part.trim() !== "") ?? "")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "")
    .replace(/[<>:"|?*]/g, "_")
    .replace(/^[.\s]+|[.\s]+$/g, "");
  const [, own = ""] = /(\.[\w-]{1,12})$/.exec(plain) ?? [];
  const stem = [...plain.slice(0, plain.length - own.length)].slice(0, MAX_NAME).join("") || "file";
  const safe = `${stem}${own || `.${ending}`}`;
  return DEVICE.test(safe) ? `_${safe}` : safe;
}
