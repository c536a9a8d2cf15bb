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
export function bytesIn(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

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

/** Without dots and spaces at the end. A name may be as long as a message; a regular expression would take its square. */
function withoutEnd(name: string): string {
  let end = name.length;
  while (end > 0 && /[.\s]/.test(name.charAt(end - 1))) end -= 1;
  return name.slice(0, end);
}

/**
 * A name for a download: no path, nothing that a system forbids in names or that turns letters round, not hidden, and
 * not too long. Without an ending it gets the given one.
 */
export function safeName(name: string, ending: string): string {
  const visible = (name.split(/[\\/]/).findLast((part) => part.trim() !== "") ?? "")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "")
    .replace(/[<>:"|?*]/g, "_")
    .replace(/^[.\s]+/, "");
  const plain = withoutEnd(visible);
  const [, own = ""] = /(\.[\w-]{1,12})$/.exec(plain) ?? [];
  const stem = [...plain.slice(0, plain.length - own.length)].slice(0, MAX_NAME).join("") || "file";
  const safe = `${stem}${own || `.${ending}`}`;
  return DEVICE.test(safe) ? `_${safe}` : safe;
}
