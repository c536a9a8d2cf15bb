import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { startAgents } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { hasQuestions } from "../data/delegations.ts";
import { startStream } from "../data/stream.ts";
import { Live } from "../live/live.tsx";
import { isWatched } from "../needs/lazy-fields.tsx";
import { mine } from "../needs/mine.ts";
import { Needs } from "../needs/needs.tsx";
import { currentAs, Header } from "./header.tsx";
import { focusByKeyboard, hasShell, helpIsOpen, moveFocus, paletteIsOpen, useKey } from "./keys.ts";
import { lazy, loadLater } from "./lazy.tsx";
import { keepLoading } from "./lazy-from.tsx";
import { go, href, hrefClosed, isWide, opened, route, type View } from "./route.ts";
import {
  Agents,
  Answered,
  Charts,
  Delegate,
  DelegationPane,
  Find,
  Inbox,
  loadViews,
  Palette,
  PaneEdge,
} from "./views.ts";

const Help = lazy((later) => later.Help);

const PAGES: Readonly<Record<View, ComponentType>> = {
  needs: Questions,
  answered: Answered,
  live: Live,
  find: Find,
  agents: Agents,
  charts: Charts,
  delegate: Delegate,
};

/** The frame of all views: the menu, what waits at the left, the view, and the open delegation at the right. */
export function Shell() {
  useEffect(() => {
    // At once, so that nothing moves when the rest is loaded.
    document.documentElement.style.setProperty("--pane", localStorage.getItem("errand-pane"));
    hasShell.value = true;
    const stops = [startStream(), startAgents()];
    const noLater = keepLoading(
      loadLater,
      ({
        announceNeeds,
        guardClicks,
        holdTypedAhead,
        listenForKeys,
        watchAnswers,
        watchDrafts,
        watchUnsent,
      }) => {
        stops.push(watchAnswers(), watchDrafts(), announceNeeds());
        stops.push(watchUnsent(), guardClicks(), listenForKeys(), holdTypedAhead());
        isWatched.value = true;
        void loadViews();
      },
    );
    return () => {
      noLater();
      hasShell.value = false;
      paletteIsOpen.value = helpIsOpen.value = false;
      isWatched.value = false;
      for (const stop of stops) stop();
    };
  }, []);
  const view = useView();
  const id = opened.value;
  useFocus(id);
  const Page = PAGES[view];
  useKey("Escape", id === null ? undefined : () => go(hrefClosed()));
  // In Find, `/` focuses the field and keeps the search.
  useKey("/", view === "find" ? undefined : () => go(href("find")));
  useKey("j", () => moveFocus(1));
  useKey("k", () => moveFocus(-1));
  useKey("?", () => {
    helpIsOpen.value = true;
  });
  return (
    <div class={`shell view-${view} ${id === null ? "" : `has-open ${isWide.value ? "is-wide" : ""}`}`}>
      <Header view={view} />
      <Reconnecting />
      <div class="columns">
        {view !== "needs" && (
          <aside class="column needs-column" aria-label="Needs you">
            <Needs />
          </aside>
        )}
        <main class="column view-column" id="view" tabIndex={-1}>
          <Page />
        </main>
        {id !== null && (
          // On a phone and when it is widened, no view stands beside it.
          <section
            class="open-part"
            role={isWide.value || isPhone.value ? "main" : "complementary"}
            aria-label="Delegation"
          >
            {!isWide.value && <PaneEdge />}
            <div class="column open-column">
              <DelegationPane key={id} id={id} />
            </div>
          </section>
        )}
      </div>
      <PhoneBar view={view} />
      {helpIsOpen.value && <Help />}
      {paletteIsOpen.value && <Palette />}
    </div>
  );
}

/** With the keyboard, the focus goes back to the row of what was closed, and into a view that replaced the focused link. */
function useFocus(id: string | null): void {
  const before = useRef(id);
  const origin = useRef<HTMLElement | null | undefined>(null);
  if (id !== null && id !== before.current)
    origin.current = document.activeElement?.closest<HTMLElement>("[data-row]");
  useLayoutEffect(() => {
    if (id === null && before.current !== null) {
      // The same delegation may have a row in the view and a question beside it.
      const rows = ["main [data-row]", "[data-row]"].flatMap((rowsOf) => [
        ...document.querySelectorAll<HTMLElement>(rowsOf),
      ]);
      const same = rows.filter((row) => row.dataset.row === before.current);
      focusByKeyboard(same.find((row) => row === origin.current) ?? same[0]);
    }
    before.current = id;
    if (id === null && document.activeElement === document.body)
      focusByKeyboard(document.getElementById("view"));
  }, [id, route.value]);
}

/** There, no questions are beside the view. */
const isPhone = signal(false);
const phone = matchMedia("(max-width: 799px)");
phone.onchange = () => {
  isPhone.value = phone.matches;
};
isPhone.value = phone.matches;

/** On a phone, each question is a card of the list. */
function Questions() {
  return isPhone.value ? <Needs /> : <Inbox />;
}

/** The view if the URL names none: the open questions, if there are any. What comes or goes later changes it no more. */
function useView(): View {
  const first = useRef<View | null>(null);
  const { view } = route.value;
  const chosen = view ?? first.current ?? (mine.value.length > 0 && isPhone.value ? "needs" : "live");
  first.current = view === null && hasQuestions.value ? chosen : null;
  return chosen;
}

/** On a phone, the main views are under the thumb. */
function PhoneBar({ view }: { readonly view: View }) {
  const waiting = mine.value.length;
  const entry = (name: View, title: string) => (
    <a href={href(name)} aria-current={currentAs(view, name)}>
      {title}
      {name === "needs" && waiting > 0 && <span class="badge">{waiting}</span>}
    </a>
  );
  return (
    <nav class="phone-bar" aria-label="Main views">
      {entry("needs", "Needs you")}
      {entry("live", "Live")}
      {entry("find", "Find")}
      {entry("agents", "Agents")}
      {entry("charts", "Charts")}
    </nav>
  );
}

/** Says that the broker is away, once that lasts longer than a moment. */
function Reconnecting() {
  return (
    <p class={isAway.value ? "reconnecting" : "sr-only"} role="status">
      {isAway.value ? "Reconnecting … What you see may be old." : ""}
    </p>
  );
}
