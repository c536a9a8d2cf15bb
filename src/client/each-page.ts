/** Reads a list page by page. Limit: the list may change between two pages. */

/** Yields the pages, each fetched with the cursor of the one before it when the loop asks for it. */
export async function* eachPage<Page extends { readonly next_cursor: string | null }>(
  fetch: (cursor: string | undefined) => Promise<Page>,
): AsyncGenerator<Page, void> {
  let cursor: string | undefined;
  do {
    const page = await fetch(cursor);
    yield page;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
