import { usageLine } from "../../client/usage.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { hrefOf } from "../app/route.ts";
import { delegatorOf } from "../session/rights.ts";
import { Age, Elapsed } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { Track } from "../ui/track.tsx";
import { PHASES, STATE_WORDS, taskText } from "../ui/words.ts";
import { Head } from "./heads.tsx";

interface Props {
  readonly delegation: Delegation;
}

/** The state in words, and since when. */
export function StateLine({ delegation }: Props) {
  const { state, created_at, finished_at, interrupt, lease } = delegation;
  const phase = PHASES[state];
  const inStateSince = interrupt?.raised_at ?? lease?.granted_at;
  return (
    <p class={`state ${phase}`}>
      <StateMark phase={phase} /> <b>{STATE_WORDS[state]}</b>{" "}
      {inStateSince !== undefined ? (
        <>
          for <Elapsed from={inStateSince} to={null} />
        </>
      ) : finished_at === null ? (
        <>
          · delegated <Age at={created_at} ago />
        </>
      ) : (
        <>
          after <Elapsed from={created_at} to={finished_at} />, <Age at={finished_at} ago />
        </>
      )}
    </p>
  );
}

/** The head of a delegation: the task, who delegated it to whom, and the answer of its state. */
export function Summary({ delegation }: Props) {
  const { target, delegator, attempt, max_attempts, redrive_of, parent_id, usage } = delegation;
  return (
    <header class="summary">
      <h1>
        <Said>{taskText(delegation)}</Said>
      </h1>
      <p class="parties">
        <span title={delegator}>{delegatorOf(delegation)}</span>
        <span class="sr-only"> → </span>
        <Track delegation={delegation} />
        <span title={target}>{target}</span>
        {attempt > 1 && delegation.state !== "failed" && (
          <span class="dim">
            attempt {attempt} of {max_attempts}
          </span>
        )}
        {delegation.priority !== 5 && <span class="dim">priority {delegation.priority}</span>}
        {redrive_of !== null && <Other word="Repeats" id={redrive_of} />}
        {parent_id !== null && <Other word="A part of" id={parent_id} />}
      </p>
      {usage && (
        <p class="usage">
          Used <Said>{usageLine(usage)}</Said>
        </p>
      )}
      <Head delegation={delegation} />
    </header>
  );
}

function Other({ word, id }: { readonly word: string; readonly id: string }) {
  return (
    <span class="dim">
      {word} <a href={hrefOf(id)}>…{id.slice(-8)}</a>
    </span>
  );
}
