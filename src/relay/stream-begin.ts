/** Tells an event stream from other answers by its first characters: servers and proxies send it under any media type. */

export interface StreamBegin {
  readonly isEvents: boolean;
  /** The whole body, with what was read. */
  readonly body: ReadableStream<Uint8Array>;
}

const ENOUGH_BYTES = 64;
const EVENT_FIELD = /^(?::|(?:data|event|id|retry)(?::|[\r\n]))/;
const EVENT_TYPE = /^\s*text\/event-stream\s*(?:;|$)/i;

/** Waits for the first characters that are no blanks. */
export async function beginOf(response: Response): Promise<StreamBegin> {
  const reader = (response.body ?? new Blob([]).stream()).getReader();
  const decoder = new TextDecoder();
  const read: Uint8Array[] = [];
  let text = "";
  const isDeclared = EVENT_TYPE.test(response.headers.get("content-type") ?? "");
  for (let bytes = 0; bytes < ENOUGH_BYTES && (text === "" || (!isDeclared && text.length < 6)); ) {
    const { done, value } = await reader.read();
    if (done) break;
    read.push(value);
    bytes += value.byteLength;
    text = (text + decoder.decode(value, { stream: true })).trimStart();
  }
  const isOther = /^[{[<]/.test(text);
  return { isEvents: !isOther && (isDeclared || EVENT_FIELD.test(text)), body: rest(reader, read) };
}

function rest(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  read: Uint8Array[],
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const first = read.shift();
      if (first) return controller.enqueue(first);
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
