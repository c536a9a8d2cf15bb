/**
 * Reads single pages of a list, an inbox or events, for callers that store cursors themselves. The cursor of a page
 * selects the next one.
 */
import * as z from "zod";
import { type AnswersFilter, answersPageSchema } from "../schema/answered.ts";
import { delegationSchema } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { toEvent } from "./events.ts";
import { type ConnectionOptions, Http, route, seconds } from "./http.ts";
import { type ListPage, type ListQuery, listPage } from "./list-page.ts";

export interface AnswersQuery extends AnswersFilter {
  /** `next_cursor` of the previous page. */
  readonly cursor?: string | undefined;
  /** 1 to 100; default 100. */
  readonly limit?: number | undefined;
}

export interface ResultsQuery {
  /** `cursor` of the previous page; default: the beginning. */
  readonly after?: string | undefined;
  /** How long to wait for a first result, in seconds; at most 60. Default 0. */
  readonly waitSeconds?: number | undefined;
  /** 1 to 1000; default 100. */
  readonly limit?: number | undefined;
}

const resultsSchema = z.object({ results: z.array(delegationSchema), cursor: z.string() });
const eventsSchema = z.object({ events: z.array(z.unknown()), cursor: z.string() });
export type ResultsPage = z.infer<typeof resultsSchema>;

export class Pages {
  readonly #http: Http;

  constructor(options: ConnectionOptions) {
    this.#http = new Http(options);
  }

  /** The delegations that the caller may see, newest first. A page may be short or empty and still have a next one. */
  list(query: ListQuery, signal?: AbortSignal): Promise<ListPage> {
    return listPage(this.#http, query, signal);
  }

  /** Settled questions, newest first. A page may be short or empty and still have a next one. */
  answers(query: AnswersQuery, signal?: AbortSignal): Promise<z.infer<typeof answersPageSchema>> {
    const call = { path: "/v1/answers", query: { ...query }, signal };
    return this.#http.requestWithRetry(answersPageSchema, call);
  }

  /** The delegator's own delegations that finished or asked a question after the cursor, oldest first. */
  async results(query: ResultsQuery, signal?: AbortSignal): Promise<ResultsPage> {
    const { after, waitSeconds = 0, limit } = query;
    const holdSeconds = this.#http.holdSeconds(waitSeconds);
    const page = await this.#http.requestWithRetry(resultsSchema, {
      path: "/v1/results",
      query: { after, limit, wait_seconds: holdSeconds > 0 ? seconds(holdSeconds) : undefined },
      signal,
      holdSeconds,
    });
    return page.results.length === 0 && holdSeconds < waitSeconds ? this.results(query, signal) : page;
  }

  /** The first events of a delegation after the cursor, oldest first. */
  async events(id: string, limit: number, signal?: AbortSignal, after = "0"): Promise<StreamEvent[]> {
    const path = route`/v1/delegations/${id}/events`;
    const query = { after, limit };
    const { events } = await this.#http.requestWithRetry(eventsSchema, { path, query, signal });
    return events.flatMap((event) => toEvent(event) ?? []);
  }
}
