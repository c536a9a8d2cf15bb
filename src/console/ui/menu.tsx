import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  readonly label: string;
  /** Called with what closes the menu. */
  readonly children: (close: () => void) => ComponentChildren;
}

/** A button with what is needed rarely. It closes by Escape, and when the focus or the pointer goes elsewhere. */
export function Menu({ label, children }: Props) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  const isOutside = (target: EventTarget | null) => target instanceof Node && !menu.current?.contains(target);
  useEffect(() => {
    const onPointerDown = ({ target }: PointerEvent) => {
      if (isOutside(target)) close();
    };
    addEventListener("pointerdown", onPointerDown);
    return () => removeEventListener("pointerdown", onPointerDown);
  }, []);
  return (
    <details
      class="tools-menu"
      ref={menu}
      onFocusOut={({ relatedTarget }) => {
        if (isOutside(relatedTarget)) close();
      }}
      onKeyDown={(event) => {
        // A dialog of the menu closes by Escape itself.
        if (event.key !== "Escape" || !menu.current?.open || menu.current.querySelector("dialog[open]"))
          return;
        event.stopPropagation();
        close();
        menu.current.querySelector("summary")?.focus();
      }}
    >
      <summary class="button quiet">{label}</summary>
      <div class="menu">{children(close)}</div>
    </details>
  );
}
