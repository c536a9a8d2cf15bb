/** The answer to what a reader asks of a delegation first, by its state: why it waits, what it does, how it ended. */

import type { ComponentType } from "preact";
import { budgetText } from "../../client/budget-text.ts";
import { explainWait, retryAtOf } from "../../client/explain-wait.ts";
import { waitCause } from "../../client/wait-cause.ts";
import { isDeniable } from "../../schema/choices.ts";
import type { Delegation, State } from "../../schema/delegation.ts";
import { agentOf } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import type { Connection } from "../data/connection.ts";
import { isApproved, isCounted } from "../needs/mine.ts";
import { isOperator, mayDelegate, mayRedrive, maySteer, seesAll } from "../session/rights.ts";
import { Age, Left } from "../ui/age.tsx";
import { Fold } from "../ui/fold.tsx";
import { Linked } from "../ui/linked.tsx";
import { Output } from "../ui/output.tsx";
import { Said } from "../ui/said.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { count, etaOf, nameOf, quietText, sentence, shareOf, stepOf } from "../ui/words.ts";
import { Awaiting } from "./awaiting.tsx";
import { lastAttemptText } from "./event-text.ts";
import { adviceOf, endingOf, hasContent, placeIn, whereText } from "./head-text.ts";
import { Resume } from "./resume.tsx";

interface Props {
  readonly delegation: Delegation;
}

const HEADS: Readonly<Record<State, ComponentType<Props>>> = {
  submitted: Queued,
  working: Working,
  input_required: Asks,
  auth_required: Asks,
  awaiting_children: Awaiting,
  completed: Completed,
  failed: Failed,
  rejected: Ended,
  canceled: Ended,
};

export function Head({ delegation }: Props) {
  const Of = HEADS[delegation.state];
  const { budget } = delegation;
  return (
    <>
      <Of delegation={delegation} />
      {budget && (
        <p class={budget.exceeded ? "late" : "dim"}>
          {budget.exceeded ? "More than its budget is used" : "Used with its parts"}: {budgetText(budget)}
          {budget.of && ", as a part of a larger budget"}
        </p>
      )}
    </>
  );
}

/** A delegation with more events than this is explained without them. */
const MAX_EVENTS = 300;
/** In a longer queue, the place is not counted. */
const MAX_QUEUE = 50;

function Queued({ delegation }: Props) {
  const { id, target, version } = delegation;
  // Only the events say how the last attempt ended and when the next one may start. At version 1 there was no attempt.
  const needsEvents = version > 1 && version <= MAX_EVENTS;
  const { value: events } = useLoaded(`${id} ${version}`, async ({ pages }, signal) =>
    needsEvents ? await pages.events(id, MAX_EVENTS, signal) : [],
  );
  const agent = agentOf(target);
  const waiting = agent?.counts.waiting ?? 0;
  const inQueue = usePlace(delegation, waiting);
  const place = delegation.behind === undefined ? inQueue : null;
  // Its place says how many there are.
  const alone = agent && place !== null ? { ...agent, counts: { ...agent.counts, waiting: 1 } } : agent;
  const retry_at = retryAtOf(events ?? []);
  const why = explainWait({ ...delegation, retry_at }, alone, now.value);
  const ended = lastAttemptText(events ?? []);
  const isPaused = waitCause({ ...delegation, retry_at }, agent, now.value) === "paused";
  return (
    <div class="why">
      <p>
        {why} {place !== null && `It is number ${place} of ${waiting} in the queue. `}
        {ended !== "" && (
          <>
            The last attempt: <Said>{sentence(ended)}</Said>
          </>
        )}
      </p>
      {isPaused && isOperator.value && <Resume agent={target} />}
    </div>
  );
}

/** Its place in the queue; null if the reader does not see all of it, or it is alone or far too long. */
function usePlace({ id, target }: Delegation, waiting: number): number | null {
  const isCounted = seesAll.value && waiting > 1 && waiting <= MAX_QUEUE;
  const read = async ({ pages }: Connection, signal: AbortSignal) =>
    isCounted ? (await pages.list({ target, state: "submitted", limit: 100 }, signal)).delegations : [];
  const { value } = useLoaded(id, read, waiting);
  return placeIn(value ?? [], id, waiting, now.value);
}

/** What the worker reported last, and its lease. */
function Working({ delegation }: Props) {
  const { lease, progress } = delegation;
  const share = shareOf(delegation);
  const step = stepOf(delegation);
  const tools = progress?.tools_used ?? [];
  const quiet = quietText(delegation, now.value);
  return (
    <div class="working-now">
      {quiet !== "" && (
        <p class="late">
          <b>{quiet}.</b> {lease && "Its worker still holds it."}
        </p>
      )}
      {share !== undefined && <progress value={share} aria-label="Progress" />}
      {progress !== null && (
        <p>
          {step !== "" && <Said>{step}</Said>}
          <span class="dim"> {etaOf(delegation)}</span>
        </p>
      )}
      {tools.length > 0 && (
        <p class="dim">
          {count(tools.length, "tool")}: <Said>{tools.join(", ")}</Said>
        </p>
      )}
      {lease && (
        <p class="dim">
          Worker <Said>{lease.worker_id}</Said>, next sign of life due within{" "}
          <Left until={lease.expires_at} isBare />
        </p>
      )}
    </div>
  );
}

function Asks({ delegation }: Props) {
  const { interrupt, delegator } = delegation;
  if (interrupt === null) return null;
  return (
    <p class="why asks">
      {isApproved(interrupt)
        ? "You approved, and others must, too"
        : maySteer(delegation)
          ? isCounted(delegation)
            ? "You may answer"
            : `Others must approve${isDeniable(interrupt) ? "; you may deny" : ""}`
          : `${nameOf(delegator)} or an approver may answer`}
      , <Left until={interrupt.expires_at} />.
    </p>
  );
}

/** The lines of a reply that are shown before the tabs. */
const REPLY_LINES = 12;

function Completed({ delegation: { reply, target, artifacts } }: Props) {
  if (!reply || !hasContent(reply)) {
    return (
      <p class="dim">
        {target} replied without words.{artifacts.length > 0 && " Its work is in the files."}
      </p>
    );
  }
  return (
    <section class="reply" aria-label="The reply">
      <Fold lines={REPLY_LINES}>
        <Output parts={reply.parts} />
      </Fold>
    </section>
  );
}

/** The lines of a message about a failure that are shown first. */
const WORDS_LINES = 6;

function Failed({ delegation }: Props) {
  const { error, target } = delegation;
  if (error === null) return null;
  const { code, message } = error;
  const where = whereText(delegation);
  const advice = adviceOf({ target, error }, mayRedrive(delegation) && mayDelegate.value);
  return (
    <section class="ending failed" aria-label="Why it failed">
      <Words text={message || `${target} gave no message.`} />
      <p class="dim">
        {where !== "" && (
          <>
            <Said>{where}</Said>{" "}
          </>
        )}
        {advice} <code title="The code of the failure">{code}</code>
      </p>
    </section>
  );
}

function Ended({ delegation }: Props) {
  const { what, words } = endingOf(delegation);
  const { finished_at } = delegation;
  return (
    <section class="ending" aria-label="How it ended">
      <p>
        {what} {finished_at !== null && <Age at={finished_at} ago />}
        {words === "" ? "." : ":"}
      </p>
      {words !== "" && <Words text={words} />}
    </section>
  );
}

function Words({ text }: { readonly text: string }) {
  return (
    <Fold lines={WORDS_LINES}>
      <p class="text">
        <Said>
          <Linked text={text} />
        </Said>
      </p>
    </Fold>
  );
}
