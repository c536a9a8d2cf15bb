/** An agent in a line: who would take work, how much waits, and how its last hour went. */
import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { alarmsOf } from "../../client/alarms.ts";
import { costText } from "../../client/usage.ts";
import type { Agent } from "../../schema/agent.ts";
import { adopt } from "../app/adopt.ts";
import { agents } from "../data/agents.ts";
import { isAway } from "../data/away.ts";
import { failedIn, figuresOf, hasFigures } from "../data/figures.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { awaitingText, hourText, rowText, slotsOf } from "./agent-words.ts";
import { calmNow } from "./calm-clock.ts";
import { styles } from "./lines.css";
import { type PresenceAgent, type PresenceText, presenceText } from "./presence-text.ts";

adopt(styles);

interface Props {
  readonly agent: Agent;
  readonly href: string;
  /** Whether its work is shown below it; undefined: it opens a page instead. */
  readonly isOpen?: boolean;
}

export function AgentRow({ agent, href, isOpen }: Props) {
  const { name, counts, oldest_waiting_at: oldest } = agent;
  const presence = presenceOf(agent);
  const isLate = alarmsOf([agent], calmNow.value).some(({ waits }) => waits > 0);
  return (
    <a class={`agent-row ${presence.sign}-row`} href={href} data-row={name} aria-expanded={isOpen}>
      <span class="sr-only">{rowText(agent, presence, figuresOf(name), calmNow.value)}</span>
      <span class="agent-cells" aria-hidden="true">
        <span class="agent-part">
          <span class="agent-name" title={name}>
            {name}
          </span>
          <span class={`presence ${presence.sign}`} title={presence.text}>
            <StateMark phase={presence.sign} />
            <span>{presence.who}</span>
            {counts.interrupted > 0 && (
              <b class="agent-asks">{counts.interrupted.toLocaleString("en")} ask</b>
            )}
            {counts.awaiting > 0 && (
              <b class="agent-awaits state awaits" title={awaitingText(counts.awaiting)}>
                <StateMark phase="awaits" /> {counts.awaiting.toLocaleString("en")}
              </b>
            )}
          </span>
        </span>
        <span class="agent-part">
          <Slots agent={agent} />
          <Queue agent={agent} />
          <span class={isLate ? "agent-oldest late" : "agent-oldest"}>
            {counts.waiting > 0 && oldest && <Age at={oldest} />}
          </span>
          {hasFigures.value && <LastHour name={name} />}
        </span>
      </span>
    </a>
  );
}

/** The names of the columns. The line of an agent says them to a screen reader. */
export function AgentColumns({ children }: { readonly children?: ComponentChildren }) {
  return (
    <div class="part-head">
      {children ?? <span />}
      <span aria-hidden="true">workers</span>
      <span class="slots slots-legend" aria-hidden="true">
        <i class="slot busy" /> busy <i class="slot" /> free
      </span>
      <span aria-hidden="true">queue</span>
      <span aria-hidden="true">oldest</span>
      {hasFigures.value && <span aria-hidden="true">last hour</span>}
    </div>
  );
}

const NOT_KNOWN: PresenceText = { sign: "unseen", who: "not known now", text: "not known now" };

const presenceOf = (agent: PresenceAgent): PresenceText =>
  isAway.value ? NOT_KNOWN : presenceText(agent, calmNow.value);

/** Whether work under the agent's name would be taken now, and if not, why. */
export function PresenceOf({ agent }: { readonly agent: PresenceAgent }) {
  const { sign, text } = presenceOf(agent);
  return (
    <span class={`presence ${sign}`}>
      <StateMark phase={sign} />
      <span>{text}</span>
    </span>
  );
}

/** More are a bar. */
const MARKS = 10;

/** What its workers can do at once: a mark for each, filled while it works. */
function Slots({ agent }: { readonly agent: Agent }) {
  const { busy, all } = slotsOf(agent);
  if (all > MARKS) {
    return (
      <span class="slots">
        <span class="meter">
          <i style={{ width: `${(100 * busy) / all}%` }} />
        </span>
        <span class="slots-text">
          {busy.toLocaleString("en")} of {all.toLocaleString("en")}
        </span>
      </span>
    );
  }
  return (
    <span class="slots">
      {Array.from({ length: all }, (_, n) => (
        <i key={n} class={n < busy ? "slot busy" : "slot"} />
      ))}
    </span>
  );
}

/** The length of its queue, beside the longest one. */
function Queue({ agent }: { readonly agent: Agent }) {
  const { waiting, delayed } = agent.counts;
  const longest = useComputed(() =>
    (agents.value ?? []).reduce((most, { counts }) => Math.max(most, counts.waiting), 1),
  ).value;
  return (
    <span class={waiting === 0 ? "queue none" : "queue"}>
      <b>{waiting.toLocaleString("en")}</b>
      {/* Where the columns have no names. */}
      {waiting > 0 && <span class="queue-word">{waiting === 1 ? "waits" : "wait"}</span>}
      {delayed > 0 && <span class="dim">+{delayed.toLocaleString("en")} later</span>}
      <span class="meter">{waiting > 0 && <i style={{ width: `${(100 * waiting) / longest}%` }} />}</span>
    </span>
  );
}

function LastHour({ name }: { readonly name: string }) {
  const figures = figuresOf(name);
  if (!figures) return <span class="agent-hour" />;
  const { completed, costs } = figures;
  const bad = failedIn(figures);
  return (
    <span class="agent-hour" title={hourText(figures)}>
      {completed + bad === 0 ? (
        <span class="dim">–</span>
      ) : (
        <>
          {bad > 0 && (
            <b class="failed">
              <StateMark phase="failed" /> {bad.toLocaleString("en")} failed
            </b>
          )}
          {completed > 0 && <span class="ok">{completed.toLocaleString("en")} ok</span>}
        </>
      )}
      {costs[0] && (
        <span class="cost">
          <Said>{costText(costs[0])}</Said>
        </span>
      )}
    </span>
  );
}
