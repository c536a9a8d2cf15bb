/** The stream ids of the events that a gateway's feed delivers from now on. */
import type { Feed } from "../../src/events/feed.ts";

export function deliveredBy(feed: Feed): ReadonlySet<string> {
  const ids = new Set<string>();
  feed.subscribe({ kind: "all" }, { push: ({ id }) => ids.add(id), gap: () => {} });
  return ids;
}
