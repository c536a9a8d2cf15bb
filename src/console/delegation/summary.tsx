import { explainWait, retryAtOf } from "../../client/explain-wait.ts";
import { usageLine } from "../../client/usage.ts";
import { timeLeft } from "../../client/words.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { hrefOf } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { maySteer } from "../session/rights.ts";
import { Age, Elapsed, Left } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import {
  count,
  etaOf,
  nameOf,
  PHASES,
  quietText,
  STATE_WORDS,
  sentence,
  shareOf,
  stepOf,
  taskText,
} from "../ui/words.ts";
import { lastAttemptText } from "./event-text.ts";

/** The head of a delegation: the task, the state in words, who delegated it to whom, and why it waits. */
export function Summary({ delegation }: { readonly delegation: Delegation }) {
  const { state, target, delegator, created_at, finished_at } = delegation;
  const { attempt, max_attempts, redrive_of, parent_id, interrupt } = delegation;
  const phase = PHASES[state];
  const inStateSince = interrupt?.raised_at ?? delegation.lease?.granted_at;
  return (
    <header class="summary">
      <h1>
        <Said>{taskText(delegation)}</Said>
      </h1>
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
      <p class="parties">
        <span title={delegator}>{nameOf(delegator)}</span> <span>→</span> <span title={target}>{target}</span>
        {attempt > 1 && (
          <span class="dim">
            attempt {attempt} of {max_attempts}
          </span>
        )}
        {delegation.priority !== 5 && <span class="dim">priority {delegation.priority}</span>}
      </p>
      {delegation.usage && (
        <p class="dim">
          Used <Said>{usageLine(delegation.usage)}</Said>
        </p>
      )}
      <Why delegation={delegation} />
      {state === "working" && <Working delegation={delegation} />}
      {redrive_of !== null && (
        <p class="dim">
          Repeats <a href={hrefOf(redrive_of)}>…{redrive_of.slice(-8)}</a>
        </p>
      )}
      {parent_id !== null && (
        <p class="dim">
          A part of <a href={hrefOf(parent_id)}>…{parent_id.slice(-8)}</a>
        </p>
      )}
    </header>
  );
}

/** A delegation with more events than this is explained without them. */
const MAX_EVENTS = 300;

/** Why the delegation waits, and how its last attempt ended. */
function Why({ delegation }: { readonly delegation: Delegation }) {
  const { id, state, target, version, interrupt } = delegation;
  // Only the events say how the last attempt ended and when the next one may start. At version 1 there was no attempt.
  const needsEvents = state === "submitted" && version > 1 && version <= MAX_EVENTS;
  const { value: events } = useLoaded(`${id} ${version}`, async ({ pages }, signal) =>
    needsEvents ? await pages.events(id, MAX_EVENTS, signal) : [],
  );
  const why =
    interrupt !== null && maySteer(delegation)
      ? `You may answer, ${timeLeft(Date.parse(interrupt.expires_at) - now.value)} left.`
      : explainWait({ ...delegation, retry_at: retryAtOf(events ?? []) }, agentOf(target), now.value);
  const ended = lastAttemptText(events ?? []);
  if (why === null) return null;
  return (
    <p class="why">
      {why}
      {ended !== "" && (
        <>
          {" "}
          The last attempt: <Said>{sentence(ended)}</Said>
        </>
      )}
    </p>
  );
}

/** What the worker reported last, and its lease. */
function Working({ delegation }: { readonly delegation: Delegation }) {
  const { lease, progress } = delegation;
  const share = shareOf(delegation);
  const step = stepOf(delegation);
  const tools = progress?.tools_used ?? [];
  const quiet = quietText(delegation, now.value);
  return (
    <div class="working-now">
      {quiet !== "" && (
        <p class="late">
          <b>{quiet}.</b> {lease && "Its worker keeps the lease."}
        </p>
      )}
      {share !== undefined && <progress value={share} aria-label="Progress" />}
      <p>
        {step !== "" && <Said>{step}</Said>}
        <span class="dim"> {etaOf(delegation)}</span>
      </p>
      {tools.length > 0 && (
        <p class="dim">
          {count(tools.length, "tool")}: <Said>{tools.join(", ")}</Said>
        </p>
      )}
      {lease && (
        <p class="dim">
          Worker <Said>{lease.worker_id}</Said>, lease <Left until={lease.expires_at} />
        </p>
      )}
    </div>
  );
}
