/** One delegation in a line: what is asked, by whom and of whom, how far it is, and since when. */
import { type Signal, useComputed } from "@preact/signals";
import { textOf } from "../../schema/a2a.ts";
import type { Agent } from "../../schema/agent.ts";
import { hrefOf, opened } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { delegatorOf } from "../session/rights.ts";
import { Age, Elapsed } from "../ui/age.tsx";
import { awaitsText } from "../ui/awaits-text.ts";
import { queuedText } from "../ui/queued-text.ts";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { etaOf, PHASES, quietText, STATE_WORDS, shareOf, stepOf, taskText } from "../ui/words.ts";

interface Props {
  readonly listed: Signal<ListedDelegation>;
  /** It is below its agent's line. */
  readonly isOfAgent?: boolean;
}

export function DelegationRow({ listed, isOfAgent = false }: Props) {
  const { id, state, created_at, finished_at, delegator, target } = listed.value;
  const phase = PHASES[state];
  const quiet = useComputed(() => quietText(listed.value, now.value)).value;
  // The line of the agent says why its queue waits.
  const status = statusOf(listed.value, isOfAgent || isAway.value ? undefined : agentOf(target));
  const eta = state === "working" ? etaOf(listed.value) : "";
  const task = taskText(listed.value);
  const share = state === "working" ? shareOf(listed.value) : undefined;
  return (
    <a
      class={`row ${phase} ${isOfAgent ? "of-agent" : ""}`}
      href={hrefOf(id)}
      data-row={id}
      aria-current={opened.value === id ? "true" : undefined}
    >
      <StateMark phase={phase} />
      <span class="row-task" dir="auto" title={task}>
        {task}
      </span>
      <span class="row-who" title={`${delegator} to ${target}`}>
        {delegatorOf(listed.value)}
        {isOfAgent ? "" : ` → ${target}`}
      </span>
      <span class="row-step" title={[status, eta].filter(Boolean).join(" · ")}>
        <span>
          {share !== undefined && (
            <span class="meter">
              <i style={{ width: `${(100 * share).toFixed(1)}%` }} />
            </span>
          )}
          {quiet !== "" && <b class="late">{quiet} </b>}
          <Said>{status}</Said>
        </span>
        {eta !== "" && <span> · {eta}</span>}
      </span>
      <span class="row-age">
        {finished_at === null ? <Elapsed from={created_at} to={null} /> : <Age at={finished_at} ago />}
      </span>
    </a>
  );
}

/** In characters; the row shows a part of it. */
const MAX_QUESTION = 300;

/** What the agent asks, or the action that it proposes; empty if it asks nothing. */
function questionOf({ interrupt }: ListedDelegation): string {
  const [request] = interrupt?.requests ?? [];
  if (!request) return "";
  return (textOf(request.message).trim() || request.action?.name || "").slice(0, MAX_QUESTION);
}

function statusOf(listed: ListedDelegation, agent: Agent | undefined): string {
  const { state, error, attempt } = listed;
  if (state === "working") {
    const again = attempt > 1 ? `attempt ${attempt}` : "";
    return [again, stepOf(listed) || "working"].filter(Boolean).join(" · ");
  }
  if (state === "submitted") return queuedText(listed, agent, now.peek());
  if (listed.awaits) return awaitsText(listed.awaits);
  const more = error ?? questionOf(listed);
  return more === "" ? STATE_WORDS[state] : `${STATE_WORDS[state]}: ${more}`;
}
