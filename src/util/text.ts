/** Text from outside: decoded, cut, and safe to show. */

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

/**
 * The text of a file that must be UTF-8, without a byte order mark. Editors and shells of Windows write UTF-16, which would
 * be read as other characters. Throws {@link EncodingError}.
 */
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

/**
 * A copy of the text in its own memory. V8 represents a part of a text by a reference into the whole, so a part that is
 * kept, for example as the key of a map, keeps the whole.
 */
export const ownText = (text: string): string => `${text} `.slice(0, -1);

/** A stream of bytes that is read once. The `body` of fetch's `Response` is one. */
export interface ByteStream {
  getReader(): {
    read(): Promise<
      | { readonly done: false; readonly value: Uint8Array }
      | { readonly done: true; readonly value?: Uint8Array | undefined }
    >;
    cancel(): Promise<void>;
  };
}

/**
 * The beginning of a body, at most `max` bytes, and whether that is all of it. The rest is canceled, because whoever
 * answers may send without an end.
 */
export async function startOf(
  { body }: { readonly body: ByteStream | null },
  max: number,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const reader = body?.getReader();
  if (!reader) return { text: "", isWhole: true };
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), isWhole: true };
    const left = max - bytes;
    bytes += value.byteLength;
    text += decoder.decode(value.subarray(0, left), { stream: true });
    if (bytes > max) break;
  }
  reader.cancel().catch(() => undefined);
  return { text, isWhole: false };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
/** They reorder what follows, so that a line shows what it does not say. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const NOT_TEXT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text of several lines for a terminal: without characters that control it or the direction of text. */
export const plainText = (text: string): string =>
  text
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(ESCAPES, "")
    .replace(DIRECTIONS, "")
    .replace(NOT_TEXT, "");

/** One line of at most `max` characters, without characters that control a terminal or the direction of text. */
export function oneLine(text: string, max = Number.POSITIVE_INFINITY): string {
  const line = text.replace(ESCAPES, "").replace(DIRECTIONS, "").replace(CONTROLS, " ").trim();
  const characters = [...line];
  return characters.length > max ? `${characters.slice(0, max - 1).join("")}…` : line;
}
