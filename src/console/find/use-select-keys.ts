/** `x` selects the focused row or takes it out, and Shift+X all from the last one; as in the questions. */
import type { Delegation } from "../../schema/delegation.ts";
import { actOf } from "./acts.ts";
import type { Selection } from "./use-selected.ts";

export function useSelectKeys(found: readonly Delegation[], selection: Selection) {
  return (event: KeyboardEvent) => {
    const { key, target, repeat, ctrlKey, metaKey, altKey } = event;
    if (key.toLowerCase() !== "x" || repeat || ctrlKey || metaKey || altKey) return;
    // The focus may be in the row's box.
    const line = target instanceof Element ? target.closest(".found-line, .found") : null;
    const row = line?.matches(".found") ? line : line?.querySelector(".found");
    const delegation = found.find(({ id }) => id === row?.getAttribute("data-row"));
    if (!delegation) return;
    // It selects no question beside the view.
    event.preventDefault();
    if (actOf(delegation) !== null) selection.toggle(delegation, event.shiftKey);
  };
}
