/**
 * Rewrites an event stream for the SDK: any line ends, one line of data for each event, and only events that answer the
 * call. Limit: 4 MiB for each event, as in the SDK.
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { RpcCall } from "./call.ts";
import { RemoteError, toRemoteError } from "./remote-error.ts";

const MAX_EVENT_CHARS = 4 * 1024 * 1024;

/** Errors with a {@link RemoteError}: the server has answered with a success, so it has what was sent. */
export function eventStream(
  body: ReadableStream<Uint8Array>,
  call: RpcCall,
  told: (text: string) => string,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const frames: EventSourceMessage[] = [];
  let isTooLarge = false;
  const parser = createParser({
    onEvent: (frame) => frames.push(frame),
    onError: ({ type }) => {
      isTooLarge ||= type === "max-buffer-size-exceeded";
    },
    maxBufferSize: MAX_EVENT_CHARS,
  });
  const toText = ({ event, data }: EventSourceMessage): string => {
    if (data.trim() === "") return "";
    const answer = call.answerIn(data);
    if (answer === undefined) throw new RemoteError("broken", told(data));
    return `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(answer)}\n\n`;
  };
  let failure: unknown;
  return new ReadableStream({
    async pull(controller) {
      for (let text = ""; text === ""; ) {
        // Events before the failure go out first: an error discards what is queued.
        if (failure !== undefined) throw failure;
        const { done, value } = await reader.read().catch((error: unknown) => {
          throw afterSuccess(call, error);
        });
        // A server may end without the last empty line.
        parser.feed(done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true }));
        try {
          for (const frame of frames.splice(0)) text += toText(frame);
          if (isTooLarge) throw new RemoteError("broken", "an event of the A2A server is too large");
        } catch (error) {
          failure = error;
        }
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (done && failure === undefined) return controller.close();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** The server has the message, although its answer was lost. */
export function afterSuccess({ sends }: RpcCall, error: unknown): RemoteError {
  const failure = toRemoteError(error);
  return sends && failure.kind === "away" ? new RemoteError("broken", failure.message) : failure;
}
