import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { textOf } from "../../schema/a2a.ts";
import { hrefOf, opened } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { refresh } from "../data/flights.ts";
import { session } from "../session/session.ts";
import { Age, Elapsed, Left } from "../ui/age.tsx";
import { queuedText } from "../ui/queued-text.ts";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { etaOf, nameOf, PHASES, type Phase, STATE_WORDS, shareOf, stepOf, taskText } from "../ui/words.ts";

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

/** If a lease seems to end within this time, the page asks the broker whether a heartbeat extended it. */
const SOON_MS = 10_000;
/** The shortest time between two such calls. */
const PAUSE_MS = 2_000;

/** Details of work in progress: the tools used, the estimated time left, and the time left of its lease. */
function FlightMore({ flight }: { readonly flight: Flight }) {
  const { id, attempt, lease, progress } = flight;
  const ends = Date.parse(lease?.expires_at ?? "");
  useEffect(() => {
    if (Number.isNaN(ends)) return;
    const ask = () => {
      if (!document.hidden && session.value) void refresh(session.value.connection, id);
    };
    const timer = setInterval(ask, Math.max(PAUSE_MS, ends - now.peek() - SOON_MS));
    return () => clearInterval(timer);
  }, [lease]);
  return (
    <span class="flight-more">
      {attempt > 1 && <span>attempt {attempt}</span>}
      {progress?.tools_used?.length ? <Said>{progress.tools_used.join(", ")}</Said> : null}
      {progress?.eta_seconds !== undefined && <span>{etaOf(flight)}</span>}
      {lease && (
        <span>
          lease <Left until={lease.expires_at} />
        </span>
      )}
    </span>
  );
}
