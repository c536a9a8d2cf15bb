/**
 * The fetch of the SDK's calls to a server whose card was read. Only an answer to the request itself goes on to the SDK:
 * JSON-RPC with the request's id, or the error of an A2A server over HTTP+JSON. Any other answer is an outage, or, after a
 * success for a message, means that the server has the message. Limit: over HTTP+JSON, any JSON object is an answer.
 */

import type { Describe } from "../util/foreign-answer.ts";
import { callOf, type RpcCall } from "./call.ts";
import { afterSuccess, eventStream } from "./event-stream.ts";
import { boundedText, urlOf } from "./guarded-fetch.ts";
import { NOT_SERVER, RemoteError } from "./remote-error.ts";
import { beginOf } from "./stream-begin.ts";

const JSON_TYPE = { "content-type": "application/json" };
const EVENTS = { "content-type": "text/event-stream" };

export function callFetch(fetch: typeof globalThis.fetch, describe: Describe): typeof globalThis.fetch {
  return async (input, init) => {
    const url = urlOf(input);
    const call = callOf(url, init);
    const response = await fetch(input, init);
    const { ok, status, headers } = response;
    const told = (text: string): string => describe({ url, status, headers, text });
    if (!ok) return failed(call, status, await boundedText(response), told);
    if (status === 204 && !call.sends) return response;
    try {
      const begin = call.streams ? await beginOf(response) : undefined;
      if (begin?.isEvents) return new Response(eventStream(begin.body, call, told), { headers: EVENTS });
      const text = await boundedText(begin ? new Response(begin.body) : response);
      const answer = call.answerIn(text);
      if (answer === undefined) throw unreadable(call, text, told(text));
      const json = JSON.stringify(answer);
      return call.streams
        ? new Response(`data: ${json}\n\n`, { headers: EVENTS })
        : new Response(json, { headers: JSON_TYPE });
    } catch (error) {
      init?.signal?.throwIfAborted();
      throw afterSuccess(call, error);
    }
  };
}

/** Of a success that is no answer to this request. */
function unreadable(call: RpcCall, text: string, told: string): RemoteError {
  if (call.isUnread(text)) return new RemoteError("unsent", told, { pause: NOT_SERVER });
  // No A2A server answers with a page, so whoever did has not passed the request on.
  if (/^\s*</.test(text)) return new RemoteError("unsent", told, { pause: NOT_SERVER });
  return new RemoteError(call.sends ? "broken" : "away", told, { pause: NOT_SERVER });
}

function failed(call: RpcCall, status: number, text: string, told: (text: string) => string): Response {
  if (status === 401 || status === 403) throw new RemoteError("refused", told(text), { status });
  if (status === 429 || status === 503) throw new RemoteError("unsent", told(text), { status });
  const error = call.errorIn(text, status);
  if (error) return new Response(JSON.stringify(error), { status, headers: JSON_TYPE });
  const kind = isNotPassedOn(status) || call.isUnread(text) ? "unsent" : "away";
  throw new RemoteError(kind, told(text), { status, pause: NOT_SERVER });
}

/** Of 4xx, only these say that the client left before the answer, which may have come. */
const CLIENT_LEFT = [460, 499];
/** Statuses of servers, balancers and networks on the way that did not reach the next one. */
const NOT_REACHED = [501, 503, 505, 511, 521, 522, 523, 525, 526, 530];

/** Whether a status that no A2A answer has proves that the request was not processed. 500, 502 and 504 do not. */
function isNotPassedOn(status: number): boolean {
  return status < 500 ? !CLIENT_LEFT.includes(status) : NOT_REACHED.includes(status);
}
