/**
 * Reads the agent card. While only the card was requested, no message was sent: so whatever answers, the work waits.
 * Limit: the server's URL is not proven wrong by any answer, because an ingress may give the same one during a deployment.
 */
import { withoutTrailingSlashes } from "../schema/text.ts";
import type { Describe } from "../util/foreign-answer.ts";
import { boundedText, jsonObject, urlOf } from "./guarded-fetch.ts";
import { isTimeout, NO_CARD, NOT_SERVER, RemoteError, toRemoteError } from "./remote-error.ts";

/** Where servers of A2A 0.2 and older have it. */
const OLD_PATH = ".well-known/agent.json";

/** Throws {@link RemoteError} for every answer that is not a JSON object. */
export function cardFetch(fetch: typeof globalThis.fetch, describe: Describe): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { ok, status, headers } = response;
    const text = await boundedText(response);
    if (ok && jsonObject(text)) return new Response(text, { headers });
    const isRefused = status === 401 || status === 403;
    const told = describe({ url: urlOf(input), status, headers, text });
    throw new RemoteError(isRefused ? "refused" : "unsent", `no agent card: ${told}`, {
      status,
      ...(!isRefused && { pause: status === 404 ? NO_CARD : NOT_SERVER }),
    });
  };
}

/** `url`: as in RemoteOptions. */
export async function readCard<T>(
  url: string,
  read: (base: string, path: string | undefined) => Promise<T>,
): Promise<T> {
  if (url.endsWith(".json")) return read(url, "");
  const base = `${withoutTrailingSlashes(url)}/`;
  try {
    return await read(base, undefined);
  } catch (error) {
    if (!(error instanceof RemoteError) || !mayBeElsewhere(error)) throw error;
    return await read(base, OLD_PATH).catch((second: unknown) => {
      throw second instanceof RemoteError && second.status !== undefined
        ? new RemoteError("unsent", `${error.message}; ${second.message}`, error.options)
        : error;
    });
  }
}

/** True for an answer of a server that works, and has nothing at this path. */
const mayBeElsewhere = ({ status }: RemoteError): boolean =>
  status !== undefined && status < 500 && ![401, 403, 407, 408, 429].includes(status);

/** `name`: of the address. */
export function cardError(error: unknown, name: string): RemoteError {
  const isOfCard = !(error instanceof RemoteError || isTimeout(error));
  if (isOfCard) {
    const message = `the agent card of ${name} is not valid, or offers only gRPC`;
    return new RemoteError("unsent", message, { pause: NO_CARD });
  }
  const failure = toRemoteError(error);
  if (failure.kind === "refused" || failure.kind === "unsent") return failure;
  return new RemoteError("unsent", failure.message, failure.options);
}
