import { mine } from "../needs/mine.ts";
import { mayDelegate } from "../session/rights.ts";
import { PALETTE_KEY, paletteIsOpen } from "./keys.ts";
import { lazy } from "./lazy.tsx";
import { Logo } from "./logo.tsx";
import { href, type View } from "./route.ts";

const Account = lazy((later) => later.Account, null);

const ENTRIES: readonly (readonly [View, string])[] = [
  ["needs", "Needs you"],
  ["live", "Live"],
  ["find", "Find"],
  ["agents", "Agents"],
  ["charts", "Charts"],
];

export function Header({ view }: { readonly view: View }) {
  const waiting = mine.value.length;
  return (
    <header class="header">
      <button type="button" class="skip" onClick={toView}>
        To the view
      </button>
      <div class="brand">
        <a href={href("live")}>
          <Logo /> Errand
        </a>
        <small>Agents do the work, and ask people here.</small>
      </div>
      <nav aria-label="Views">
        {ENTRIES.map(([name, title]) => (
          <a key={name} href={href(name)} aria-current={currentAs(view, name)}>
            {title}
            {name === "needs" && waiting > 0 && <span class="badge">{waiting}</span>}
          </a>
        ))}
      </nav>
      <button
        type="button"
        class="quiet go-to"
        aria-keyshortcuts="Control+K Meta+K"
        onClick={() => {
          paletteIsOpen.value = true;
        }}
      >
        Go to <kbd>{PALETTE_KEY}</kbd>
      </button>
      {mayDelegate.value && (
        <a class="button primary delegate-link" href={href("delegate")} aria-label="Delegate">
          + <span>Delegate</span>
        </a>
      )}
      <Account />
    </header>
  );
}

/** How the entry of a view is marked: what was answered is reached from what waits. */
export const currentAs = (view: View, entry: View): "page" | "true" | undefined =>
  view === entry ? "page" : view === "answered" && entry === "needs" ? "true" : undefined;

/** A link would change the fragment, which names the view. */
function toView(): void {
  document.getElementById("view")?.focus();
}
