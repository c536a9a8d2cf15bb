/**
 * Gives a response the id of its request: an id that was put into a text for the SDK as it was sent, and an error that was
 * written before the SDK read the request its id instead of null.
 */
import { memberSpans } from "../../util/json-scan.ts";
import { rawIdOf, unwrapIds } from "../../util/rpc-ids.ts";

/** The id of a request; undefined for any other message. */
export function requestIdIn(body: unknown): string | number | undefined {
  if (typeof body !== "object" || body === null || !("method" in body) || !("id" in body)) return undefined;
  const { id } = body;
  return (typeof id === "string" && id.isWellFormed()) || typeof id === "number" ? id : undefined;
}

/** `isWrapped`: the request has an id or a token that was put into a text; a batch has no `id` of its own. */
export async function withRequestId(
  response: Response,
  id: string | number | undefined,
  isWrapped: boolean,
): Promise<Response> {
  const type = response.headers.get("content-type") ?? "";
  if ((id === undefined && !isWrapped) || response.body === null) return response;
  if (type.includes("event-stream")) {
    return isWrapped ? new Response(response.body.pipeThrough(unwrapLines()), response) : response;
  }
  if (!type.includes("json") || (!isWrapped && response.status < 400)) return response;
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  const text = withId(await response.text(), id);
  return new Response(text, { status: response.status, headers });
}

function withId(json: string, id: string | number | undefined): string {
  if (id === undefined) return unwrapIds(json);
  const span = memberSpans(json, ["id"]).get("id");
  const lacksId = span !== undefined && json.slice(span.start, span.end) === "null";
  return lacksId ? json.slice(0, span.start) + rawIdOf(id) + json.slice(span.end) : unwrapIds(json);
}

const DATA = "data: ";

/** The SDK writes each message on one line. */
function unwrapLines(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  const unwrap = (line: string) => (line.startsWith(DATA) ? DATA + unwrapIds(line.slice(DATA.length)) : line);
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (lines.length > 0) controller.enqueue(encoder.encode(`${lines.map(unwrap).join("\n")}\n`));
    },
    flush(controller) {
      if (rest !== "") controller.enqueue(encoder.encode(unwrap(rest)));
    },
  });
}
