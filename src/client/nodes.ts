/** Trees as nodes: read at once, and watched. */
import * as z from "zod";
import { issuesOf } from "../schema/issues.ts";
import { type Tree, type TreeEvent, treeEventSchema, treeSchema } from "../schema/tree.ts";
import { unreadable } from "./events.ts";
import { type Http, route } from "./http.ts";
import { parseLenient } from "./lenient.ts";
import { type Kind, keyOf, readStream } from "./sse.ts";

interface Options {
  readonly signal?: AbortSignal | undefined;
}

export function readNodes(http: Http, id: string, { signal }: Options): Promise<Tree> {
  return http.requestWithRetry(treeSchema, { path: route`/v1/delegations/${id}/tree`, signal });
}

const cursorSchema = z.object({ cursor: z.string() });
const typedSchema = z.object({ type: z.string() });

/** Null: of a type that this version does not know. */
function toTreeEvent(data: unknown): TreeEvent | null {
  const known = parseLenient(treeEventSchema, data);
  if (known.success) return known.data;
  const { type = "RESET" } = typedSchema.safeParse(data).data ?? {};
  if (type !== "RESET" && type !== "DELEGATION_NODE") return null;
  throw unreadable(issuesOf(known.error, { whole: "event" }).text);
}

const TREE_EVENTS: Kind<TreeEvent> = {
  parse: toTreeEvent,
  keyOf: (event) => (event.type === "RESET" ? null : keyOf(event)),
  isLast: () => false,
};

export async function* watchNodes(
  http: Http,
  id: string,
  { after, signal }: Options & { readonly after?: string | undefined },
): AsyncGenerator<TreeEvent, void> {
  const path = route`/v1/delegations/${id}/tree/events`;
  // Without a cursor, a stream that breaks before its first event would resume at a later time and skip events.
  const call = { path, query: { limit: 1 }, signal };
  const from = after ?? (await http.requestUntilAvailable(cursorSchema, call)).cursor;
  yield* readStream(http, { path, after: from, signal, ends: false }, TREE_EVENTS);
}
