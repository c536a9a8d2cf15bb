import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface Props {
  readonly isOpen: Signal<boolean>;
  /** What is shown on request. */
  readonly text: string;
  /** After the list has become longer or shorter. */
  readonly onToggle: () => void;
  /** Beside the button. */
  readonly children: ComponentChildren;
}

/** Below a list: shows more of it, and then less. */
export function MoreToggle({ isOpen, text, onToggle, children }: Props) {
  return (
    <p class="agents-more">
      <button
        type="button"
        class="quiet"
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value;
          onToggle();
        }}
      >
        {isOpen.value ? "Fewer" : text}
      </button>
      {children}
    </p>
  );
}
