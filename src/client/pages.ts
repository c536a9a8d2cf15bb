/**
 * One page at a time of what grows: delegations by filter, the caller's inbox. For callers that keep cursors.
 * Limit: no state of its own; the cursor of a page is to be given back for the next one.
 */
import { z } from "zod";
import { type DelegationFilter, delegationSchema } from "../schema/delegation.ts";
import { eventPageSchema, type StreamEvent } from "../schema/event.ts";
import { type ConnectionOptions, Http, route, seconds } from "./http.ts";

/** One of the first four is the index; the others filter within it. */
export interface ListQuery extends DelegationFilter {
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** 1 to 100; default 20. */
  readonly limit?: number | undefined;
}

export interface ResultsQuery {
  /** `cursor` of the page before; default: the beginning. */
  readonly after?: string | undefined;
  /** How long an empty page may wait for its first result; at most 60. */
  readonly waitSeconds?: number | undefined;
  /** 1 to 1000; default 100. */
  readonly limit?: number | undefined;
}

const listSchema = z.object({
  delegations: z.array(delegationSchema),
  next_cursor: z.string().nullable(),
  /** Everything created at or after this instant was looked at; null: everything was, or the broker is older. */
  scanned_to: z.string().nullable().default(null),
});
const resultsSchema = z.object({ results: z.array(delegationSchema), cursor: z.string() });
export type ResultsPage = z.infer<typeof resultsSchema>;

export class Pages {
  readonly #http: Http;

  constructor(options: ConnectionOptions) {
    this.#http = new Http(options);
  }

  /** What the caller may see, newest first; a page may be short, or empty, and still have a next one. */
  list(query: ListQuery, signal?: AbortSignal): Promise<z.infer<typeof listSchema>> {
    const state = typeof query.state === "object" ? query.state.join(",") : query.state;
    return this.#http.persist(listSchema, { path: "/v1/delegations", query: { ...query, state }, signal });
  }

  /** What the caller delegated that finished or asks something since the cursor, oldest first. */
  results({ after, waitSeconds = 0, limit }: ResultsQuery, signal?: AbortSignal): Promise<ResultsPage> {
    return this.#http.persist(resultsSchema, {
      path: "/v1/results",
      query: { after, limit, wait_seconds: waitSeconds > 0 ? seconds(waitSeconds) : undefined },
      signal,
      holdSeconds: waitSeconds,
    });
  }

  /** The first events of a delegation, the oldest first. */
  async events(id: string, limit: number, signal?: AbortSignal): Promise<StreamEvent[]> {
    const path = route`/v1/delegations/${id}/events`;
    const query = { after: "0", limit };
    return (await this.#http.persist(eventPageSchema, { path, query, signal })).events;
  }
}
