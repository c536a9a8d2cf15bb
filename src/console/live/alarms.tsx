/** The head lines of Live: what failed lately, and agents whose work waits and is not taken, with what helps. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type Alarm, alarmsOf } from "../../client/alarms.ts";
import { href } from "../app/route.ts";
import { agentOf, agents, readAgents } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { failures } from "../data/figures.ts";
import { isOperator, isSelf } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { CommandLine } from "../ui/command-line.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { News } from "../ui/steady.tsx";
import { useAction } from "../ui/use-action.ts";
import { count } from "../ui/words.ts";
import { bySeverity } from "./agents-by-need.ts";
import { alarmText } from "./alarm-text.ts";
import { FailuresLine } from "./failures-line.tsx";
import { MoreToggle } from "./more-toggle.tsx";
import { type Place, usePlaces } from "./places.ts";

/** Lines of agents at first, and at most: Agents shows the others first. */
const FEW = 3;
const MANY = 20;

/** A line is about an agent, or about all that failed lately. */
type Shown = Alarm | "failures";

const keyOf = (shown: Shown): string => (shown === "failures" ? shown : `${shown.agent} ${shown.kind}`);

/** While the reader uses what is in `place`, the lines keep their places, so that nothing below them moves. */
export function Alarms({ place }: { readonly place: Place }) {
  const isOpen = useSignal(false);
  // The times in the text follow the clock.
  const ofAgents = bySeverity(alarmsOf(agents.value ?? [], now.value));
  const all: readonly Shown[] = failures.value === null ? ofAgents : ["failures", ...ofAgents];
  const beside = all.length - ofAgents.length;
  const live = new Set(all.map(keyOf));
  const most = beside + (isOpen.value ? MANY : FEW);
  const found = { items: all.slice(0, most), isLong: ofAgents.length > FEW };
  const { rows, waiting, isLong, showAll } = usePlaces(place, found, keyOf);
  const more = all.length - rows.filter((shown) => live.has(keyOf(shown))).length;
  if (rows.length === 0 && waiting === 0) return null;
  return (
    <section class="alarms" aria-label="Alarms">
      <News of="alarm" count={waiting} onShow={showAll} />
      <ul>
        {rows.map((shown) =>
          shown === "failures" ? (
            <FailuresLine key={shown} />
          ) : (
            <Line key={keyOf(shown)} alarm={shown} isOver={!live.has(keyOf(shown))} />
          ),
        )}
      </ul>
      {isLong && (
        <MoreToggle isOpen={isOpen} text={count(Math.max(0, more), "more alarm")} onToggle={showAll}>
          {isOpen.value && ofAgents.length > MANY && (
            <a href={href("agents")}>{count(ofAgents.length - MANY, "more alarm")} in Agents</a>
          )}
        </MoreToggle>
      )}
    </section>
  );
}

interface LineProps {
  readonly alarm: Alarm;
  /** It is over, and only keeps its place. */
  readonly isOver: boolean;
}

function Line({ alarm, isOver }: LineProps) {
  const { agent, kind } = alarm;
  const last = useRef("");
  if (!isOver) last.current = alarmText(alarm, agentOf(agent)?.presence.paused, now.value);
  const sign = kind === "all_busy" ? "busy" : kind === "paused" ? "paused" : "alarm";
  return (
    <li class={`alarm-line ${isOver ? "over" : `${sign}-line`}`}>
      <StateMark phase={isOver ? "completed" : sign} />
      <span class="alarm-text" title={`${agent}: ${last.current}`}>
        <span class="alarm-agent">
          <a href={href("agents", { name: agent })}>{agent}</a>:
        </span>{" "}
        {isOver ? <span role="status">over now</span> : <Said>{last.current}</Said>}
      </span>
      {kind === "no_worker" && (isOperator.value || isSelf(agent)) && <HowToStart agent={agent} />}
      {kind === "paused" && isOperator.value && <Resume agent={agent} isOver={isOver} />}
    </li>
  );
}

function HowToStart({ agent }: { readonly agent: string }) {
  const isOpen = useSignal(false);
  return (
    <>
      <button
        type="button"
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        How to start one<span class="sr-only"> for {agent}</span>
      </button>
      {isOpen.value && (
        <div class="alarm-help">
          <p class="dim">A worker turns any command into the agent. It needs a token of agent:{agent}.</p>
          <CommandLine command={`work --agent ${agent} -- COMMAND`} />
        </div>
      )}
    </>
  );
}

function Resume({ agent, isOver }: { readonly agent: string; readonly isOver: boolean }) {
  const { isRunning, error, run, again } = useAction();
  const resume = async () => {
    await session.value?.connection.admin.resumeAgent(agent);
    await readAgents();
  };
  return (
    <>
      {/* It keeps the focus. */}
      <button type="button" aria-disabled={isRunning || isOver} onClick={() => !isOver && void run(resume)}>
        {isOver ? "Resumed" : "Resume"}
        <span class="sr-only"> {agent}</span>
      </button>
      {error !== null && (
        <div class="alarm-help">
          <Problem error={error} again={again} />
        </div>
      )}
    </>
  );
}
