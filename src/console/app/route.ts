/**
 * The state of the page, kept in the URL's fragment: `#/find?state=failed&open=dlg_…`. A fragment never reaches a
 * server, so a search leaves no trace in anybody's logs, and the page works under any path.
 */
import { computed, signal } from "@preact/signals";

const VIEWS = ["needs", "answered", "live", "find", "agents", "charts", "delegate"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  /** Null: the URL names none, and the page chooses. */
  readonly view: View | null;
  readonly params: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: VIEWS.find((view) => view === path) ?? null, params: new URLSearchParams(query) };
}

/** The code of a link that signs in. It is removed from the URL at once, so that no history keeps it. */
export function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname);
  return code;
}

export const route = signal(read());
addEventListener("hashchange", () => {
  route.value = read();
});

/** The delegation that is open beside the view: an id, or whatever the URL has in its place. */
export const opened = computed(() => route.value.params.get("open") || null);

/** Whether it takes the whole page. */
export const isWide = computed(() => route.value.params.has("wide"));

/** Where this browser keeps whether the reader widened the last one: the next opens like it. */
export const WIDE_KEY = "errand-wide";

type Params = Readonly<Record<string, string | undefined>>;

export function href(view: View, params: Params = {}): string {
  const given = Object.entries(params).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const query = new URLSearchParams(given).toString();
  return `#/${view}${query === "" ? "" : `?${query}`}`;
}

/** The current view with some parameters changed; undefined removes one. */
export function hrefWith(changes: Params): string {
  const { view, params } = route.value;
  return href(view ?? "live", { ...Object.fromEntries(params), ...changes });
}

export const hrefOf = (id: string): string =>
  hrefWith({
    open: id,
    tab: undefined,
    wide: (opened.value ? isWide.value : localStorage.getItem(WIDE_KEY)) ? "yes" : undefined,
  });

export const hrefClosed = (): string => hrefWith({ open: undefined, tab: undefined, wide: undefined });

export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.value = read();
}
