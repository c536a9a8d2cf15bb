/**
 * A generator of the SDK's as a stream of ours. What it refuses with at once is thrown while there still is a status to
 * refuse with; what goes wrong later is the stream's last event. Limit: the quota, the comments and the bound for slow
 * readers are those of every stream.
 */
import { type Frame, sse } from "../../http/stream.ts";
import type { Scope } from "../context.ts";

export async function streamed(
  scope: Scope,
  events: AsyncGenerator<object>,
  headers: Readonly<Record<string, string>>,
  refusal: (error: unknown) => Frame,
): Promise<Response> {
  const first = await events.next();
  // Nothing is subscribed to before the second step: a body that nobody reads leaves nothing behind.
  const response = sse(scope.reader(), async function* (signal) {
    scope.endWith(signal);
    try {
      for (let step = first; !step.done; step = await events.next())
        yield { json: JSON.stringify(step.value) };
    } catch (error) {
      yield refusal(error);
    } finally {
      await events.return(undefined);
    }
  });
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}
