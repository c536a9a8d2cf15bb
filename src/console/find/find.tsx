import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { go, href, route } from "../app/route.ts";
import { CommandLine } from "../ui/command-line.tsx";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { Windowed } from "../ui/windowed.tsx";
import { count } from "../ui/words.ts";
import { isOffered, maySelect } from "./acts.ts";
import { filterOf, isFiltered } from "./filter.ts";
import { FilterForm } from "./filter-form.tsx";
import { styles } from "./find.css";
import { FoundRow } from "./found-row.tsx";
import { Chips, Presets } from "./presets.tsx";
import { SavedViews } from "./saved-views.tsx";
import { SelectAll } from "./select-all.tsx";
import { SeveralBar } from "./several-bar.tsx";
import { Tally } from "./tally.tsx";
import { useFound } from "./use-found.ts";
import { useSelectKeys } from "./use-select-keys.ts";
import { MOST, type Selection, useSelected } from "./use-selected.ts";

adopt(styles);

/** Every delegation that the reader may see, by any of its properties. The filter is in the URL. */
export function Find() {
  const { params } = route.value;
  const search = useFound(filterOf(params));
  const { found, isComplete, isReading, error, more } = search;
  const selection = useSelected(found);
  const all = useSelectAll(search, selection);
  const { toggle, none } = selection;
  const own: Selection = {
    ...selection,
    toggle: (...what) => {
      all.end();
      toggle(...what);
    },
    none: () => {
      all.end();
      none();
    },
  };
  const onKeyDown = useSelectKeys(found, own);
  const isFolded = useSignal(true);
  return (
    <section aria-label="Find" class={isFolded.value ? "find is-folded" : "find"} onKeyDown={onKeyDown}>
      <div class="find-head">
        <h1>
          Find{" "}
          {found.length > 0 && (
            <small>
              {count(found.length, "delegation")}
              {isComplete ? "" : " so far"}
            </small>
          )}
        </h1>
        <Tally found={found} />
        <Presets />
      </div>
      <SavedViews />
      <FilterForm
        params={params}
        isFolded={isFolded.value}
        onFold={() => {
          isFolded.value = !isFolded.value;
        }}
      />
      <Chips />
      {maySelect() && <SelectAll found={found} selection={own} />}
      <Windowed items={found} keyOf={({ id }) => id}>
        {(delegation) => <FoundRow delegation={delegation} selection={own} />}
      </Windowed>
      <Problem error={error} />
      {!isComplete && (
        <button type="button" class="more" disabled={isReading} onClick={more}>
          {isReading ? "Reading …" : error === null ? "Older ones" : "Read again"}
        </button>
      )}
      {isComplete && found.length === 0 && <NothingFound hasFilter={isFiltered(params)} />}
      {maySelect() && <SeveralBar selection={own} selectAll={all.select} isReadingAll={all.isReading} />}
    </section>
  );
}

/** Reads the rest of the search, and selects all of it. */
function useSelectAll(
  { found, isComplete, isReading, error, more, key }: ReturnType<typeof useFound>,
  selection: Selection,
) {
  /** The search of which all is wanted. */
  const wanted = useSignal<string | null>(null);
  useEffect(() => {
    if (wanted.value === null || isReading) return;
    const isSame = wanted.value === key && error === null;
    if (isSame && !isComplete && found.length < MOST) return more();
    wanted.value = null;
    if (isSame) selection.all();
  });
  const isRest = !isComplete && found.length < MOST && found.filter(isOffered).every(selection.has);
  const select = () => {
    wanted.value = key;
  };
  const end = () => {
    wanted.value = null;
  };
  return { select: isRest || wanted.value !== null ? select : null, isReading: wanted.value !== null, end };
}

function NothingFound({ hasFilter }: { readonly hasFilter: boolean }) {
  if (!hasFilter) {
    return (
      <Empty
        title="No delegation yet"
        line={<CommandLine command={'delegate scout "how many words is this"'} />}
      >
        Everything that was ever delegated, and is still kept, can be found here. This delegates something:
      </Empty>
    );
  }
  return (
    <div class="empty">
      <h2>Nothing fits</h2>
      <p>No delegation that you may see has all of this.</p>
      <button type="button" onClick={() => go(href("find"))}>
        Clear the filter
      </button>
    </div>
  );
}
