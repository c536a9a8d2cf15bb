/** The first characters of a body, at most `max`. The rest is not read: whoever answers may send without an end. */
export async function startOf({ body }: Response, max: number): Promise<string> {
  const reader = body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < max) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
  }
  reader.cancel().catch(() => undefined);
  return text.slice(0, max);
}
