/** The start of a text, for lists, events and error messages. */
const PREVIEW_BYTES = 100;

/** At most `bytes` bytes of UTF-8, cut between characters. */
export function preview(text: string, bytes: number = PREVIEW_BYTES): string {
  // A character takes at least one byte.
  const buffer = Buffer.from(text.length > bytes ? text.slice(0, bytes + 1) : text, "utf8");
  if (buffer.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return buffer.toString("utf8", 0, end);
}
