/**
 * The beginning of a body, at most `max` bytes, and whether that is all of it. The rest is canceled, because whoever
 * answers may send without an end.
 */
export async function startOf(
  { body }: Pick<Response, "body">,
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
