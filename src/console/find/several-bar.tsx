/** What can be done with the selected delegations. It is over the list, so that it moves no row. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import { Confirm } from "../ui/confirm.tsx";
import { ReasonField, reasonOf } from "../ui/reason-field.tsx";
import { count } from "../ui/words.ts";
import { type Act, actOf } from "./acts.ts";
import { run, start } from "./run.ts";
import { RunNote } from "./run-note.tsx";
import type { Selection } from "./use-selected.ts";

interface Props {
  readonly selection: Selection;
  /** Selects also what is not in the list yet; null: everything is. */
  readonly selectAll: (() => void) | null;
  readonly isReadingAll: boolean;
}

export function SeveralBar(props: Props) {
  const { value } = run;
  return (
    <div class="dock find-dock">
      {value && (
        <section class="several" aria-label="What became of them">
          <RunNote run={value} />
        </section>
      )}
      {/* What is left of a run is in its note. */}
      {(value === null || value.state === "over") && <Selected {...props} />}
    </div>
  );
}

function Selected({ selection, selectAll, isReadingAll }: Props) {
  const { chosen } = selection;
  const shown = useShownActs(chosen);
  if (chosen.length === 0) return null;
  const of = (act: Act) => chosen.filter((one) => actOf(one) === act);
  const [again, live] = [of("again"), of("cancel")];
  return (
    <fieldset class="several" aria-label="Selected delegations">
      <span role="status">{chosen.length.toLocaleString("en")} selected</span>
      {shown.has("again") && (
        <button
          type="button"
          class="primary"
          title="Runs each again as a new delegation"
          disabled={again.length === 0 || isReadingAll}
          onClick={() => start("again", again)}
        >
          Try again {again.length.toLocaleString("en")}
        </button>
      )}
      {shown.has("cancel") && <CancelSeveral live={live} isReadingAll={isReadingAll} />}
      {selectAll !== null && (
        <button type="button" class="quiet" disabled={isReadingAll} onClick={selectAll}>
          {isReadingAll ? "Reading …" : "Select all that match"}
        </button>
      )}
      <button type="button" class="quiet" onClick={selection.none}>
        Select none
      </button>
    </fieldset>
  );
}

/** A button stays while anything is selected: one that went would bring another to its place. */
function useShownActs(chosen: readonly Delegation[]): ReadonlySet<Act> {
  const shown = useRef(new Set<Act>());
  if (chosen.length === 0) shown.current.clear();
  for (const one of chosen) {
    const act = actOf(one);
    if (act) shown.current.add(act);
  }
  return shown.current;
}

interface CancelProps {
  readonly live: readonly Delegation[];
  readonly isReadingAll: boolean;
}

function CancelSeveral({ live, isReadingAll }: CancelProps) {
  const reason = useSignal("");
  /** Those that the question names: others may be selected, or end, while it is open. */
  const asked = useSignal<readonly Delegation[]>([]);
  const cancel = async () => start("cancel", asked.peek(), reasonOf(reason));
  return (
    <Confirm
      verb={`Cancel ${count(live.length, "delegation")}`}
      confirm={`Cancel ${count(asked.value.length, "delegation")}`}
      question={`Cancel ${count(asked.value.length, "delegation")}?`}
      disabled={live.length === 0 || isReadingAll}
      danger
      onOpen={() => {
        asked.value = live;
      }}
      onConfirm={cancel}
    >
      <p>
        Their agents are notified at once, and everything delegated under them is canceled, too. This cannot
        be undone.
      </p>
      <ReasonField reason={reason} />
    </Confirm>
  );
}
