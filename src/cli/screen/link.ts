/** The connection of a view that stays open: it retries for as long as it takes, and knows whether the broker answers. */

import { environmentFetch } from "../../client/environment-fetch.ts";
import type { ConnectionOptions } from "../../client/http.ts";

export class Link {
  /** Retries without a limit. */
  readonly connection: ConnectionOptions;
  /** For what a person waits for: gives up after some seconds. */
  readonly brief: ConnectionOptions;
  isAway = false;

  /** `changed` is called when `isAway` changes. */
  constructor(connection: ConnectionOptions, changed: () => void) {
    const set = (isAway: boolean) => {
      if (this.isAway === isAway) return;
      this.isAway = isAway;
      changed();
    };
    const watched: ConnectionOptions = {
      ...connection,
      failFast: false,
      onRetry: () => set(true),
      fetch: async (input, init) => {
        const response = await environmentFetch(input, init);
        // A proxy answers 502 to 504 for a broker that is away.
        if (response.status < 500) set(false);
        return response;
      },
    };
    this.connection = { ...watched, retryForMs: Number.POSITIVE_INFINITY };
    this.brief = { ...watched, retryForMs: BRIEF_MS };
  }
}

const BRIEF_MS = 5_000;
