import { useLayoutEffect, useRef } from "preact/hooks";
import { openDialog } from "../ui/open-dialog.ts";
import { helpIsOpen, PALETTE_KEY } from "./keys.ts";

/** The keyboard shortcuts, in a dialog. */
const KEYS = [
  [PALETTE_KEY, "go to a view, an agent, a delegation; do something"],
  ["j", "the next row"],
  ["k", "the row before"],
  ["Enter", "open it"],
  ["Esc", "leave a field, then close the open delegation"],
  ["w", "give it the whole page, or a part of it"],
  ["a", "approve the focused question"],
  ["d", "deny it"],
  ["e", "edit the arguments that it proposes"],
  ["r", "answer it in its field"],
  ["Ctrl+Enter", "send what you typed"],
  ["u", "take the answer back"],
  ["x", "select it, to decide several at once"],
  ["n", "show the new questions"],
  ["/", "find"],
  ["?", "these keys"],
] as const;

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => openDialog(dialog.current), []);
  return (
    <dialog
      ref={dialog}
      aria-label="Keyboard"
      onClose={() => {
        helpIsOpen.value = false;
      }}
    >
      <h2>Keyboard</h2>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
