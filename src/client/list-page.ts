/** A page of the list of delegations. By itself, because `errand list` loads only what it needs. */
import type * as z from "zod";
import { type DelegationFilter, delegationPageSchema } from "../schema/delegation.ts";
import type { Http } from "./http.ts";

export interface ListQuery extends DelegationFilter {
  /** `next_cursor` of the previous page. */
  readonly cursor?: string | undefined;
  /** 1 to 100; default 20. */
  readonly limit?: number | undefined;
}

export type ListPage = z.infer<typeof delegationPageSchema>;

/** The delegations that the caller may see, newest first. A page may be short or empty and still have a next one. */
export function listPage(http: Http, query: ListQuery, signal?: AbortSignal): Promise<ListPage> {
  const state = typeof query.state === "object" ? query.state.join(",") : query.state;
  return http.requestWithRetry(delegationPageSchema, {
    path: "/v1/delegations",
    query: { ...query, state },
    signal,
  });
}
