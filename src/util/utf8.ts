/** The text of a file that must be UTF-8. Editors and shells of Windows write UTF-16, which would be read as other characters. */

/** Its message names the file and says what is wrong with it, and shows nothing of its content. */
export class EncodingError extends Error {
  override readonly name = "EncodingError";
  /** What to do, as a sentence. */
  readonly remedy: string;

  constructor(source: string, isUtf16: boolean) {
    super(`${source} is ${isUtf16 ? "UTF-16 text" : "not UTF-8 text"}`);
    this.remedy = isUtf16
      ? "Save it as UTF-8; in PowerShell: Out-File -Encoding utf8."
      : "Encode binary data as text first.";
  }
}

/** Without a byte order mark. Throws {@link EncodingError}. */
export function utf8(bytes: Uint8Array, source: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // UTF-16 without a byte order mark is valid UTF-8, with a NUL for every other byte of a Latin text.
    if (!isAlternatingWithNul(bytes)) return text;
  } catch {
    throw new EncodingError(source, hasUtf16Mark(bytes) || isAlternatingWithNul(bytes));
  }
  throw new EncodingError(source, true);
}

const hasUtf16Mark = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);

function isAlternatingWithNul(bytes: Uint8Array): boolean {
  const start = bytes.subarray(0, 64);
  if (start.length < 4) return false;
  const nuls = (odd: number) => start.filter((byte, index) => index % 2 === odd && byte === 0).length;
  const half = Math.floor(start.length / 2);
  return (nuls(0) === 0 && nuls(1) === half) || (nuls(1) === 0 && nuls(0) >= half);
}
