/** The library's clients, with one token, for the broker that served the page. */
import { signal } from "@preact/signals";
import { Admin } from "../../client/admin.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { BROKER_HEADER } from "../../client/known-broker.ts";
import { Pages } from "../../client/pages.ts";

export interface Connection {
  readonly delegator: Delegator;
  readonly admin: Admin;
  readonly pages: Pages;
  /** For further clients of the library. */
  readonly options: ConnectionOptions;
  /** Whether the broker has refused its token. */
  readonly isRefused: () => boolean;
}

/** When the broker stopped answering, in milliseconds since 1970; null while it answers. */
export const lostSince = signal<number | null>(null);

/** Browsers let requests outlive their page up to 64 KiB in total; a character has at most three bytes. */
const MAX_KEPT_CHARACTERS = 20_000;

/** True while the page closes: a change that it sends then must still arrive. */
let isClosing = false;
for (const type of ["pagehide", "pageshow"])
  addEventListener(
    type,
    () => {
      isClosing = type === "pagehide";
    },
    { capture: true },
  );

const isKept = ({ body }: RequestInit): boolean =>
  isClosing && (body ? typeof body === "string" && body.length <= MAX_KEPT_CHARACTERS : true);

/** How long a click waits for a broker that is away. */
const RETRY_MS = 10_000;

export function connect(token?: string): Connection {
  let isRefused = false;
  const options = {
    url: new URL(".", location.href).href,
    token,
    failFast: false,
    retryForMs: RETRY_MS,
    onRetry: () => {
      lostSince.value ??= Date.now();
    },
    fetch: async (input: URL | RequestInfo, init: RequestInit = {}): Promise<Response> => {
      const response = await fetch(input, isKept(init) ? { ...init, keepalive: true } : init);
      // A proxy may answer for a broker that is away.
      if (response.status < 500 && response.headers.has(BROKER_HEADER)) lostSince.value = null;
      isRefused ||= response.status === 401;
      return response;
    },
  };
  return {
    delegator: new Delegator(options),
    admin: new Admin(options),
    pages: new Pages(options),
    options,
    isRefused: () => isRefused,
  };
}
