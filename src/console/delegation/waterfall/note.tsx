/** The line below a waterfall that says what is pointed at or has the focus. */
import { useSignal } from "@preact/signals";
import { Said } from "../../ui/said.tsx";

/** Elements with `data-note` have a note. */
const noteOf = (target: EventTarget | null): string =>
  (target instanceof Element && target.closest("[data-note]")?.getAttribute("data-note")) || "";

export function useNote() {
  const text = useSignal("");
  const show = ({ target }: Event) => {
    text.value = noteOf(target);
  };
  const hide = () => {
    text.value = "";
  };
  return {
    text: text.value,
    handlers: {
      onPointerOver: show,
      // A tap shows the note of a bar, and then gives the focus to its row, which has none.
      onFocusIn: (event: Event) => noteOf(event.target) !== "" && show(event),
      onFocusOut: ({ target }: Event) => noteOf(target) !== "" && hide(),
      // A finger leaves at the end of every tap.
      onPointerLeave: ({ pointerType }: PointerEvent) => {
        if (pointerType !== "touch") hide();
      },
    },
  };
}

/** The same is in the names of the rows and marks, for those who hear the page. */
export function Note({ text, otherwise }: { readonly text: string; readonly otherwise: string }) {
  return (
    <p class="fall-note" aria-hidden="true">
      <Said>{text || otherwise}</Said>
    </p>
  );
}
