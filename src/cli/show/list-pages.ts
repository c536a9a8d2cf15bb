/** The pages of a list at the broker, as the commands that list read them. */
import type { CliHost } from "../host.ts";
import { jsonText, note, write } from "./output.ts";

/** The most items that one request returns. */
const PAGE = 100;

interface Reading<P> {
  /** How many items are wanted in all. */
  readonly wanted: number;
  readonly cursor: string | undefined;
  readonly read: (page: { readonly limit: number; readonly cursor: string | undefined }) => Promise<P>;
  readonly countOf: (page: P) => number;
}

/** The pages from the cursor on, up to as many items as are wanted. */
export async function* pagesUpTo<P extends { readonly next_cursor: string | null }>({
  wanted,
  cursor: start,
  read,
  countOf,
}: Reading<P>): AsyncGenerator<P, void> {
  let left = wanted;
  let cursor: string | null | undefined = start;
  do {
    const page = await read({ limit: Math.min(left, PAGE), cursor: cursor ?? undefined });
    yield page;
    left -= countOf(page);
    cursor = page.next_cursor;
  } while (cursor !== null && left > 0);
}

/** On stderr also with --json, because all of stdout is items. `otherwise`: another way to see the rest. */
export async function noteMore(
  host: CliHost,
  cursor: string | null,
  json = false,
  otherwise = "",
): Promise<void> {
  if (cursor === null) return;
  if (json) await write(host.stderr, `${jsonText({ next_cursor: cursor })}\n`);
  else await note(host, `more results: --cursor ${cursor}${otherwise}`);
}
