import type { Delegation } from "../../schema/delegation.ts";
import { hrefOf, opened } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import { delegatorOf } from "../session/rights.ts";
import { Age, Elapsed } from "../ui/age.tsx";
import { awaitsText } from "../ui/awaits-text.ts";
import { errorText } from "../ui/error-text.ts";
import { isMissing } from "../ui/or-gone.ts";
import { queuedText } from "../ui/queued-text.ts";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { PHASES, STATE_WORDS, taskText } from "../ui/words.ts";
import { actOf, maySelect } from "./acts.ts";
import type { Selection } from "./use-selected.ts";

interface Props {
  readonly delegation: Delegation;
  readonly selection: Selection;
}

/** A delegation that was found, and the box that selects it. */
export function FoundRow({ delegation, selection }: Props) {
  return maySelect() ? (
    <div class="found-line">
      <SelectBox delegation={delegation} selection={selection} />
      <FoundLink delegation={delegation} />
    </div>
  ) : (
    <FoundLink delegation={delegation} />
  );
}

function SelectBox({ delegation, selection }: Props) {
  const act = actOf(delegation);
  if (act === null) return <span class="select" />;
  const what = act === "again" ? "Select, to try several again" : "Select, to cancel several";
  return (
    <label class="select" title={`${what} (x; with Shift: all from the last one)`}>
      <input
        type="checkbox"
        name="select"
        aria-label={`${what}: ${taskText(delegation)}`}
        checked={selection.has(delegation)}
        onClick={({ shiftKey }) => selection.toggle(delegation, shiftKey)}
      />
    </label>
  );
}

function FoundLink({ delegation }: Pick<Props, "delegation">) {
  const { id, state, delegator, target, created_at, finished_at, error, redriven_as } = delegation;
  const phase = PHASES[state];
  return (
    <a
      class={`found ${phase}`}
      href={hrefOf(id)}
      data-row={id}
      aria-current={opened.value === id ? "true" : undefined}
    >
      <StateMark phase={phase} />
      <span class="row-task said" dir="auto">
        {taskText(delegation)}
      </span>
      <span class="row-age">
        <Age at={created_at} ago />
      </span>
      <span class="found-who">
        <span title={`${delegator} to ${target}`}>
          {delegatorOf(delegation)} → {target}
        </span>
        <span class={`state ${phase}`}>
          {state === "submitted"
            ? queuedText(delegation, isAway.value ? undefined : agentOf(target), now.peek())
            : delegation.awaits
              ? awaitsText(delegation.awaits)
              : STATE_WORDS[state]}
          {redriven_as !== null && <TriedAgain id={redriven_as} />}
          {finished_at !== null && (
            <>
              {" "}
              after <Elapsed from={created_at} to={finished_at} />
            </>
          )}
          {error !== null && state !== "canceled" && <Said title={error.code}>: {errorText(error)}</Said>}
        </span>
      </span>
    </a>
  );
}

/** Whether it was: a repeat that was refused does not exist, and another try may be accepted. */
function TriedAgain({ id }: { readonly id: string }) {
  const { error } = useLoaded(id, ({ delegator }, signal) => delegator.get(id, { signal }));
  return isMissing(error) ? null : <>, tried again,</>;
}
