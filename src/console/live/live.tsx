import { useRef } from "preact/hooks";
import type { Agent } from "../../schema/agent.ts";
import { href } from "../app/route.ts";
import { agentOf, agents } from "../data/agents.ts";
import { inView, isLoaded } from "../data/flights.ts";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { count } from "../ui/words.ts";
import { AgentRow, PresenceOf } from "./agent-row.tsx";
import { FlightList } from "./flight-list.tsx";
import { FlightRow } from "./flight-row.tsx";
import { type Group, groups, tally, tallyText } from "./tally.ts";

/** With more delegations than this, they are grouped by agent. Of more agents than this, the others are a link. */
const MANY = 30;

/** The live delegations. */
export function Live() {
  const total = inView.value.length;
  return (
    <>
      <section aria-labelledby="live-title">
        <h1 id="live-title">Live {total > 0 && <small>{headOf(total)}</small>}</h1>
        {!isLoaded.value && total === 0 ? (
          <p class="loading">Reading what is live …</p>
        ) : total === 0 ? (
          <NothingLive />
        ) : total > MANY ? (
          <Groups />
        ) : (
          <FlightList />
        )}
      </section>
      {(total > 0 || agents.value?.length !== 0) && <AgentList />}
    </>
  );
}

/** `6 delegations: 1 working, 3 asking, 2 queued`. */
function headOf(total: number): string {
  const all = count(total, "delegation");
  return isLoaded.value ? [all, tallyText(tally.value)].filter(Boolean).join(": ") : `${all} so far …`;
}

function NothingLive() {
  const [first] = agents.value ?? [];
  const name = first?.name ?? "scout";
  if (!agents.value?.some(({ presence }) => presence.state === "online")) {
    return (
      <Empty title="Nothing is on its way" line={`npx errand work --agent ${name} -- wc -w`}>
        Every delegation appears here on its way from its delegator to its agent. An agent is a name with a
        queue; a worker takes the work. No worker is online. This starts one that counts words
        {!isOperator.value && " (it needs a token of the agent)"}:
      </Empty>
    );
  }
  return (
    <Empty title="Nothing is on its way" line={`npx errand delegate ${name} "how many words is this"`}>
      Every delegation appears here on its way from its delegator to its agent.
      {mayDelegate.value && " Delegate something from this page, or from a terminal:"}
    </Empty>
  );
}

function Groups() {
  return [...groups.value.values()].map((group) => <OneGroup key={group.target} group={group} />);
}

function OneGroup({ group }: { readonly group: Group }) {
  const { target, more } = group;
  const agent = agentOf(target);
  const list = useRef<HTMLUListElement>(null);
  const rows = useSteady(group.rows, list);
  return (
    <section class="group" aria-label={target}>
      <h2>
        {target} {agent && <PresenceOf agent={agent} />} <small>{tallyText(group)}</small>
      </h2>
      <ul class="rows" ref={list}>
        {rows.map((flight) => (
          <li key={flight.peek().id}>
            <FlightRow flight={flight} />
          </li>
        ))}
      </ul>
      {more > 0 && (
        <a class="more" href={href("find", { target, state: "live" })}>
          {more} more
        </a>
      )}
    </section>
  );
}

/** A touch screen goes on hovering where it was tapped last. */
const canHover = matchMedia("(hover: hover)");
const isInUse = (list: Element | null): boolean =>
  list?.matches(canHover.matches ? ":focus-within, :hover" : ":focus-within") ?? false;

/** The rows to draw. While the list is in use, the rows that are drawn keep their places until they end. */
function useSteady(rows: Group["rows"], list: { readonly current: Element | null }): Group["rows"] {
  const drawn = useRef(rows);
  if (isInUse(list.current)) {
    const live = drawn.current.filter((flight) => inView.value.includes(flight));
    drawn.current = [...new Set([...live, ...rows])].slice(0, rows.length);
  } else drawn.current = rows;
  return drawn.current;
}

/** The agents to show, by name. Of many, those with work come first, then those that are online. */
function toShow(all: readonly Agent[]): readonly Agent[] {
  if (all.length <= MANY) return all;
  const rank = ({ counts, presence }: Agent): number =>
    Object.values(counts).some((number) => number > 0) ? 0 : presence.state === "online" ? 1 : 2;
  return all.toSorted((a, b) => rank(a) - rank(b)).slice(0, MANY);
}

function AgentList() {
  const found = agents.value;
  if (found === null) return null;
  if (found.length === 0) {
    return (
      <section aria-labelledby="agents-title">
        <h2 id="agents-title">Agents</h2>
        <Empty title="No agent yet" line="npx errand work --agent scout -- wc -w">
          An agent is a name with a queue. A worker takes the work; this starts one:
          {!isOperator.value && " (it needs a token of the agent)"}
        </Empty>
      </section>
    );
  }
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">
        Agents <small>{count(found.length, "agent")}</small>
      </h2>
      <ul class="rows agent-rows">
        {toShow(found).map((agent) => (
          <li key={agent.name}>
            <AgentRow agent={agent} />
          </li>
        ))}
      </ul>
      {found.length > MANY && (
        <a class="more" href={href("agents")}>
          {(found.length - MANY).toLocaleString("en")} more
        </a>
      )}
    </section>
  );
}
