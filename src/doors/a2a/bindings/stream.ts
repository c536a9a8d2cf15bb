/**
 * An SDK generator as an SSE response. An error before the first event is thrown, so that the response has its status; a
 * later error is the stream's last event.
 */
import type { StopSignal } from "../../../util/stop-signal.ts";
import { EventStream, type Frame } from "../../http/event-stream.ts";
import type { A2AContext } from "../context.ts";

export async function streamResponse(
  context: A2AContext,
  events: AsyncGenerator<object>,
  headers: Readonly<Record<string, string>>,
  errorFrame: (error: unknown) => Frame,
  toJson: (event: object) => string = (event) => JSON.stringify(event),
): Promise<EventStream> {
  const first = await events.next();
  // The generator subscribes only at its second step, so a body that nobody reads leaks nothing.
  const open = async function* (signal: StopSignal) {
    context.endOn(signal);
    try {
      for (let step = first; !step.done; step = await events.next()) yield { json: toJson(step.value) };
    } catch (error) {
      yield errorFrame(error);
    } finally {
      await events.return(undefined);
    }
  };
  return new EventStream(context.reader(), open, { headers });
}
