import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** The element that holds the control and what takes its place. */
const HOLDER = ".in-place-of";
/** Buttons that change an answer, but do not give it. */
const EDITS = ".edit-field button, .edit-head button";
/** The button that was pressed last in each holder: by pointer, by key or by the page. */
const pressed = new WeakMap<Element, Element>();
addEventListener(
  "click",
  ({ target }) => {
    const button = target instanceof Element ? target.closest("button") : null;
    const holder = button?.closest(HOLDER);
    if (button && holder && !button.matches(EDITS)) pressed.set(holder, button);
  },
  { capture: true },
);

interface Props {
  /** What takes the pressed button back. */
  readonly button?: ComponentChildren;
  /** What happened. */
  readonly children: ComponentChildren;
  /** More about it, which is not announced. */
  readonly aside?: ComponentChildren;
}

/**
 * Stands exactly where the pressed button was, over it, so that nothing moves and nobody has to look for it. Nobody
 * pressed one here: at the first of its buttons.
 */
export function InPlace({ button, children, aside }: Props) {
  const line = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    const holder = line.current?.closest(HOLDER);
    if (!holder) return;
    const place = () => line.current && putOver(line.current, holder);
    // It observes at once, too.
    const observer = new ResizeObserver(place);
    place();
    observer.observe(holder);
    return () => observer.disconnect();
  }, []);
  return (
    <p class="answered in-place" ref={line}>
      {button}
      <span>
        <span role="status">{children}</span> {aside}
      </span>
    </p>
  );
}

function putOver({ style }: HTMLElement, holder: Element): void {
  const own = pressed.get(holder);
  const control = own && holder.contains(own) ? own : holder.querySelector(`.answer button:not(${EDITS})`);
  if (!control) return;
  const [outer, inner] = [holder.getBoundingClientRect(), control.getBoundingClientRect()];
  const before = inner.left - outer.left;
  const after = outer.right - inner.right;
  style.top = `${inner.top - outer.top}px`;
  style.minHeight = `${inner.height}px`;
  // The text is where there is more room.
  const isLate = before > after;
  style.flexDirection = isLate ? "row-reverse" : "row";
  style.paddingInlineStart = isLate ? "0" : `${before}px`;
  style.paddingInlineEnd = isLate ? `${after}px` : "0";
}
