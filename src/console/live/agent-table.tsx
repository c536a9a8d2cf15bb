/** The agents, a line each, those that need somebody first; a line opens to show its work. */
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Agent } from "../../schema/agent.ts";
import { href, hrefWith, route } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { inView } from "../data/delegations.ts";
import { hasFigures } from "../data/figures.ts";
import { News } from "../ui/steady.tsx";
import { count } from "../ui/words.ts";
import { AgentColumns, AgentRow } from "./agent-row.tsx";
import { agentsByNeed } from "./agents-by-need.ts";
import { DelegationRows } from "./delegation-rows.tsx";
import { MoreToggle } from "./more-toggle.tsx";
import { byNeed } from "./need.ts";
import { type Place, usePlaces } from "./places.ts";

/** Of many, so many of those with work are shown, at least so many in all, and at most so many on request. */
const FEW = 8;
const LEAST = 3;
const MANY = 30;

export function AgentTable({ place }: { readonly place: Place }) {
  const isOpen = useSignal(false);
  const found = agents.value ?? [];
  const { agents: sorted, busy } = useMemo(() => agentsByNeed(found, now.peek()), [found]);
  const picked = route.value.params.get("agent");
  const most = isOpen.value ? MANY : sorted.length > FEW ? Math.max(LEAST, Math.min(busy, FEW)) : FEW;
  const shown = sorted.filter(({ name }, index) => index < most || name === picked);
  const all = { items: shown, isLong: sorted.length > shown.length || isOpen.value };
  const { rows, waiting, isLong, showAll } = usePlaces(place, all, ({ name }) => name);
  if (found.length === 0) return null;
  const hidden = sorted.length - rows.length;
  return (
    <section
      class={hasFigures.value ? "live-part agents has-figures" : "live-part agents"}
      aria-label="Agents"
    >
      <AgentColumns>
        <h2>
          Agents <small>{found.length.toLocaleString("en")}</small>
        </h2>
      </AgentColumns>
      <div class="steady">
        <News of="agent" count={waiting} onShow={showAll} />
        <ul class="rows lines">
          {rows.map((agent) => (
            <Line key={agent.name} agent={agent} isOpen={agent.name === picked} place={place} />
          ))}
        </ul>
      </div>
      {isLong && (
        <MoreToggle
          isOpen={isOpen}
          text={restText(Math.max(0, busy - rows.length), hidden)}
          onToggle={showAll}
        >
          {isOpen.value && hidden > 0 && <a href={href("agents")}>{count(hidden, "more agent")}</a>}
        </MoreToggle>
      )}
    </section>
  );
}

/** `4 more agents with work, 14 idle agents`. */
function restText(busy: number, all: number): string {
  const parts = [
    busy > 0 && `${count(busy, "more agent")} with work`,
    all > busy && count(all - busy, "idle agent"),
  ];
  return parts.filter(Boolean).join(", ");
}

interface LineProps {
  readonly agent: Agent;
  readonly isOpen: boolean;
  readonly place: Place;
}

function Line({ agent, isOpen, place }: LineProps) {
  const { name } = agent;
  return (
    <li>
      <div class="agent-line">
        <AgentRow agent={agent} isOpen={isOpen} href={hrefWith({ agent: isOpen ? undefined : name })} />
        <a
          class="agent-page-link"
          href={href("agents", { name })}
          aria-label={`The page of ${name}`}
          title={`The page of ${name}`}
        >
          →
        </a>
      </div>
      {isOpen && <WorkOf name={name} place={place} />}
    </li>
  );
}

function WorkOf({ name, place }: { readonly name: string; readonly place: Place }) {
  // The target of a delegation never changes.
  const own = byNeed(inView.value.filter((listed) => listed.peek().target === name));
  const area = useRef<HTMLDivElement>(null);
  return (
    <div class="agent-work" ref={area}>
      {own.length === 0 ? (
        <p class="dim">Nothing that you may see is delegated to {name} now.</p>
      ) : (
        <DelegationRows
          delegations={own}
          most={SHOWN}
          place={place}
          more={href("find", { target: name, state: "live" })}
          isOfAgent
        />
      )}
    </div>
  );
}

const SHOWN = 10;
