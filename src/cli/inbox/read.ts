/**
 * Reads what the inbox shows. Limit: results are searched among the newest delegations, because the broker lists by the
 * time of creation; one that was created long before it ended may be missing.
 */
import type { Pages } from "../../client/pages.ts";
import { type Delegation, TERMINAL_STATES } from "../../schema/delegation.ts";
import type { Counted } from "../counted.ts";
import { answersAll, QUESTION_STATES } from "../rights.ts";
import { belongs, inOrder, seenNow, toEntry } from "./entry.ts";

const PAGE = 50;
/** How many open questions are read, and how many finished delegations. */
const MAX_QUESTIONS = 1000;
const MAX_FINISHED = 300;
/** How many results are shown. */
export const MAX_RESULTS = 50;

export interface Scope {
  readonly principal: string;
  /** Only results that ended at or after this instant. */
  readonly since: string;
  /** Whose approvals count. */
  readonly counted: Counted;
}

/** In the order of the inbox. */
export async function readInbox(pages: Pages, scope: Scope, signal: AbortSignal): Promise<Delegation[]> {
  const { principal, since } = scope;
  const own = { delegator: principal };
  const found = new Map<string, Delegation>();
  const questions = { ...(answersAll(principal) ? {} : own), state: QUESTION_STATES };
  for await (const one of upTo(MAX_QUESTIONS, pages, questions, signal)) found.set(one.id, one);
  let results = 0;
  for await (const one of upTo(MAX_FINISHED, pages, { ...own, state: TERMINAL_STATES }, signal)) {
    if (!belongs(principal, since, toEntry(one, principal))) continue;
    found.set(one.id, one);
    results += 1;
    if (results === MAX_RESULTS) break;
  }
  await scope.counted.read(found.values());
  const entries = [...found.values()]
    .map((one) => seenNow(toEntry(one, principal), scope.counted))
    .filter((entry) => belongs(principal, since, entry));
  return inOrder(entries).flatMap(({ id }) => found.get(id) ?? []);
}

async function* upTo(
  most: number,
  pages: Pages,
  query: Parameters<Pages["list"]>[0],
  signal: AbortSignal,
): AsyncGenerator<Delegation, void> {
  let left = most;
  let cursor: string | undefined;
  do {
    const page = await pages.list({ ...query, limit: Math.min(PAGE, left), cursor }, signal);
    yield* page.delegations;
    left -= page.delegations.length;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && left > 0);
}
