import type { Delegation } from "../../schema/delegation.ts";
import { adopt } from "../app/adopt.ts";
import { go, href, hrefOf, opened, route } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import { Age, Elapsed } from "../ui/age.tsx";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { queuedText } from "../ui/queued-text.ts";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { Windowed } from "../ui/windowed.tsx";
import { count, nameOf, PHASES, STATE_WORDS, taskText } from "../ui/words.ts";
import { filterOf, isFiltered } from "./filter.ts";
import { FilterForm } from "./filter-form.tsx";
import { styles } from "./find.css";
import { Chips, Presets } from "./presets.tsx";
import { useFound } from "./use-found.ts";

adopt(styles);

/** Every delegation that the reader may see, by any of its properties. The filter is in the URL. */
export function Find() {
  const { params } = route.value;
  const { found, isComplete, isReading, error, more } = useFound(filterOf(params));
  return (
    <section aria-label="Find">
      <h1>
        Find{" "}
        {found.length > 0 && (
          <small>
            {count(found.length, "delegation")}
            {isComplete ? "" : " so far"}
          </small>
        )}
      </h1>
      <Presets />
      <FilterForm params={params} />
      <Chips />
      <Problem error={error} />
      <Windowed items={found} keyOf={({ id }) => id}>
        {(delegation) => <Row delegation={delegation} />}
      </Windowed>
      {!isComplete && error === null && (
        <button type="button" class="more" disabled={isReading} onClick={more}>
          {isReading ? "Reading …" : "Older ones"}
        </button>
      )}
      {isComplete && found.length === 0 && <NothingFound hasFilter={isFiltered(params)} />}
    </section>
  );
}

function Row({ delegation }: { readonly delegation: Delegation }) {
  const { id, state, delegator, target, created_at, finished_at, error } = delegation;
  const phase = PHASES[state];
  return (
    <a
      class={`found ${phase}`}
      href={hrefOf(id)}
      data-row={id}
      aria-current={opened.value === id ? "true" : undefined}
    >
      <StateMark phase={phase} />
      <span class="row-task">
        <Said>{taskText(delegation)}</Said>
      </span>
      <span class="row-age">
        <Age at={created_at} ago />
      </span>
      <span class="found-who">
        <span title={`${delegator} to ${target}`}>
          {nameOf(delegator)} → {target}
        </span>
        <span class={`state ${phase}`}>
          {state === "submitted"
            ? queuedText(delegation, isAway.value ? undefined : agentOf(target), now.peek())
            : STATE_WORDS[state]}
          {finished_at !== null && (
            <>
              {" "}
              after <Elapsed from={created_at} to={finished_at} />
            </>
          )}
          {error !== null && state !== "canceled" && (
            <Said title={error.code}>: {error.message || error.code}</Said>
          )}
        </span>
      </span>
    </a>
  );
}

function NothingFound({ hasFilter }: { readonly hasFilter: boolean }) {
  if (!hasFilter) {
    return (
      <Empty title="No delegation yet" line={'errand delegate scout "how many words is this"'}>
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
