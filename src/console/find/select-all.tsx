import type { Delegation } from "../../schema/delegation.ts";
import { isOffered } from "./acts.ts";
import { MOST, type Selection } from "./use-selected.ts";

interface Props {
  readonly found: readonly Delegation[];
  readonly selection: Selection;
}

/** The box above the rows, for all that are shown. */
export function SelectAll({ found, selection }: Props) {
  const offered = found.filter(isOffered).slice(0, MOST);
  // Its place, so that the rows stay where they are.
  if (offered.length === 0) return found.length === 0 ? null : <div class="select-all" />;
  const { length } = offered.filter(selection.has);
  const isAll = length === offered.length;
  return (
    <label class="select-all check">
      <span class="dim">
        Select {found.length > MOST ? "the first" : "all"} {offered.length.toLocaleString("en")} that can be
        tried again or canceled
      </span>
      <input
        type="checkbox"
        checked={isAll}
        // Of some, it is drawn as a dash.
        indeterminate={length > 0 && !isAll}
        onClick={isAll ? selection.none : selection.all}
      />
    </label>
  );
}
