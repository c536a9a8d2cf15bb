import { type Signal, useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { textOf } from "../../schema/a2a.ts";
import { hrefOf, opened } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import { refresh } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { session } from "../session/session.ts";
import { Age, Elapsed, Left } from "../ui/age.tsx";
import { queuedText } from "../ui/queued-text.ts";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import {
  etaOf,
  nameOf,
  PHASES,
  type Phase,
  quietText,
  STATE_WORDS,
  shareOf,
  stepOf,
  taskText,
} from "../ui/words.ts";

/** One delegation: what is asked, and its way from the delegator to the agent. */
export function DelegationRow({ listed }: { readonly listed: Signal<ListedDelegation> }) {
  const { id, state, created_at, finished_at, delegator, target } = listed.value;
  const phase = PHASES[state];
  const question = questionOf(listed.value);
  const isOpen = opened.value === id;
  return (
    <a class={`row ${phase}`} href={hrefOf(id)} data-row={id} aria-current={isOpen ? "true" : undefined}>
      <span class="row-head">
        <span class="row-task">
          <Said>{taskText(listed.value)}</Said>
        </span>
        <span class="row-age">
          {finished_at === null ? (
            <>
              for <Elapsed from={created_at} to={null} />
            </>
          ) : (
            <Age at={finished_at} ago />
          )}
        </span>
      </span>
      <span class="row-from" title={delegator}>
        {nameOf(delegator)}
      </span>
      <Track phase={phase} at={placeOf(listed.value, phase)} />
      <span class="row-to" title={target}>
        {target}
      </span>
      <span class="row-step">
        <Said title={statusOf(listed.value)}>{statusOf(listed.value)}</Said>
      </span>
      {question !== "" && (
        <span class="row-more">
          <Said title={question}>{question}</Said>
        </span>
      )}
      {phase === "working" && <DelegationMore listed={listed.value} />}
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

function placeOf(listed: ListedDelegation, phase: Phase): number {
  if (phase === "queued") return QUEUED_AT;
  if (phase === "completed") return 1;
  if (phase === "failed") return QUEUED_AT;
  // Progress moves the dot through the middle, so that neither end is taken for a state.
  const share = shareOf(listed);
  return share === undefined ? 0.5 : 0.15 + 0.75 * share;
}

/** In characters; the row shows one line of it. */
const MAX_QUESTION = 300;

/** What the agent asks, or the action that it proposes; empty if it asks nothing. */
function questionOf({ interrupt }: ListedDelegation): string {
  const [request] = interrupt?.requests ?? [];
  if (!request) return "";
  return (textOf(request.message).trim() || request.action?.name || "").slice(0, MAX_QUESTION);
}

function statusOf(listed: ListedDelegation): string {
  const { state, error, target } = listed;
  if (state === "working") return stepOf(listed) || "working";
  if (state === "submitted")
    return queuedText(listed, isAway.value ? undefined : agentOf(target), now.peek());
  return error === null ? STATE_WORDS[state] : `${STATE_WORDS[state]}: ${error}`;
}

/** If a lease seems to end within this time, the page asks the broker whether a heartbeat extended it. */
const SOON_MS = 10_000;
/** The shortest time between two such calls. */
const PAUSE_MS = 2_000;

/** Details of work in progress: the tools used, the estimated time left, and the time left of its lease. */
function DelegationMore({ listed }: { readonly listed: ListedDelegation }) {
  const { id, attempt, lease, progress } = listed;
  const quiet = useComputed(() => quietText(listed, now.value)).value;
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
    <span class="row-more">
      {quiet !== "" && <b class="late">{quiet}</b>}
      {attempt > 1 && <span>attempt {attempt}</span>}
      {progress?.tools_used?.length ? <Said>{progress.tools_used.join(", ")}</Said> : null}
      {progress?.eta_seconds !== undefined && <span>{etaOf(listed)}</span>}
      {lease && (
        <span>
          lease <Left until={lease.expires_at} />
        </span>
      )}
    </span>
  );
}
