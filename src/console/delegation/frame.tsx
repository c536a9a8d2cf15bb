/** What surrounds a delegation: its state at the top, and beside it what changes the place that it has on the page. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import { focusByKeyboard, useKey } from "../app/keys.ts";
import { go, hrefClosed, isWide } from "../app/route.ts";
import { Icon } from "../ui/icon.tsx";
import { More } from "./more.tsx";
import { toggleWide } from "./pane-width.ts";
import { StateLine } from "./summary.tsx";

interface FrameProps {
  /** Null: it is not read. */
  readonly delegation?: Delegation | null;
  readonly children: ComponentChildren;
}

export function Frame({ delegation = null, children }: FrameProps) {
  const article = useRef<HTMLElement>(null);
  useLayoutEffect(() => focusByKeyboard(article.current), []);
  useKey("w", toggleWide);
  const size = isWide.value ? "narrow" : "widen";
  return (
    <article class="delegation" ref={article} tabIndex={-1} aria-label="Delegation">
      <div class="delegation-top">
        {delegation ? <StateLine delegation={delegation} /> : <span />}
        <div class="delegation-tools">
          {delegation && <More delegation={delegation} />}
          <button
            type="button"
            class="quiet widen"
            onClick={toggleWide}
            aria-label={size === "widen" ? "Widen" : "Narrow"}
            title={size === "widen" ? "To the whole page (w)" : "Beside the view (w)"}
          >
            <Icon of={size} />
          </button>
          <button
            type="button"
            class="quiet"
            onClick={() => go(hrefClosed())}
            aria-label="Close"
            title="Close (Esc)"
          >
            <Icon of="close" />
          </button>
        </div>
      </div>
      {children}
    </article>
  );
}
