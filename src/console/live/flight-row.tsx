import type { Signal } from "@preact/signals";
import { textOf } from "../../schema/a2a.ts";
import { hrefOf, opened } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { Age, Elapsed } from "../ui/age.tsx";
import { queuedText } from "../ui/queued-text.ts";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { nameOf, PHASES, type Phase, STATE_WORDS, shareOf, stepOf, taskText } from "../ui/words.ts";
import { FlightMore } from "./flight-more.tsx";

/** One delegation: what is asked, and its way from the delegator to the agent. */
export function FlightRow({ flight }: { readonly flight: Signal<Flight> }) {
  const { id, state, created_at, finished_at, delegator, target } = flight.value;
  const phase = PHASES[state];
  const question = questionOf(flight.value);
  const isOpen = opened.value === id;
  return (
    <a class={`flight ${phase}`} href={hrefOf(id)} data-row={id} aria-current={isOpen ? "true" : undefined}>
      <span class="flight-head">
        <span class="flight-task">
          <Said>{taskText(flight.value)}</Said>
        </span>
        <span class="flight-age">
          {finished_at === null ? (
            <>
              for <Elapsed from={created_at} to={null} />
            </>
          ) : (
            <Age at={finished_at} ago />
          )}
        </span>
      </span>
      <span class="flight-from" title={delegator}>
        {nameOf(delegator)}
      </span>
      <Track phase={phase} at={placeOf(flight.value, phase)} />
      <span class="flight-to" title={target}>
        {target}
      </span>
      <span class="flight-step">
        <Said title={statusOf(flight.value)}>{statusOf(flight.value)}</Said>
      </span>
      {question !== "" && (
        <span class="flight-more">
          <Said title={question}>{question}</Said>
        </span>
      )}
      {phase === "working" && <FlightMore flight={flight.value} />}
    </a>
  );
}

/** The line with the dot. `at` is between 0, the delegator, and 1, the agent. */
function Track({ phase, at }: { readonly phase: Phase; readonly at: number }) {
  return (
    <span class="track">
      <span class="track-carrier" style={{ transform: `translateX(${(at * 100).toFixed(1)}%)` }}>
        <StateMark phase={phase} />
      </span>
    </span>
  );
}

const QUEUED_AT = 0.06;

function placeOf(flight: Flight, phase: Phase): number {
  if (phase === "queued") return QUEUED_AT;
  if (phase === "completed") return 1;
  if (phase === "failed") return QUEUED_AT;
  // Progress moves the dot through the middle, so that neither end is taken for a state.
  const share = shareOf(flight);
  return share === undefined ? 0.5 : 0.15 + 0.75 * share;
}

/** In characters; the row shows one line of it. */
const MAX_QUESTION = 300;

/** What the agent asks, or the action that it proposes; empty if it asks nothing. */
function questionOf({ interrupt }: Flight): string {
  const [request] = interrupt?.requests ?? [];
  if (!request) return "";
  return (textOf(request.message).trim() || request.action?.name || "").slice(0, MAX_QUESTION);
}

function statusOf(flight: Flight): string {
  const { state, error, target } = flight;
  if (state === "working") return stepOf(flight) || "working";
  if (state === "submitted")
    return queuedText(flight, isAway.value ? undefined : agentOf(target), now.peek());
  return error === null ? STATE_WORDS[state] : `${STATE_WORDS[state]}: ${error}`;
}
