import { type Signal, useComputed, useSignal } from "@preact/signals";
import { href } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import type { Flight } from "../data/flight.ts";
import { inView, isLoaded } from "../data/flights.ts";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { count } from "../ui/words.ts";
import { AgentRow } from "./agent-row.tsx";
import { FlightList } from "./flight-list.tsx";
import { FlightRow } from "./flight-row.tsx";

/** With more than this, the delegations are grouped by agent. */
const MANY = 30;

/** Who works on what, now. */
export function Live() {
  const total = inView.value.length;
  return (
    <>
      <section aria-labelledby="live-title">
        <h1 id="live-title">Live {total > 0 && <small>{count(total, "delegation")}</small>}</h1>
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
      <AgentList />
    </>
  );
}

function NothingLive() {
  const [first] = agents.value ?? [];
  const name = first?.name ?? "scout";
  if (!agents.value?.some(({ presence }) => presence.state === "online")) {
    return (
      <Empty title="Nothing is on its way" line={`npx errand work --agent ${name} -- wc -w`}>
        Every delegation appears here on its way from its delegator to its agent. No agent is online, so start
        a worker first, for example this one, which counts words:
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
  const groups = useComputed(byTarget);
  return [...groups.value].map(([target, flights]) => (
    <section class="group" key={target} aria-label={target}>
      <h2>
        {target} <small>{count(flights.length, "delegation")}</small>
      </h2>
      <ul class="rows">
        {flights.slice(0, SHOWN).map((flight) => (
          <li key={flight.value.id}>
            <FlightRow flight={flight} />
          </li>
        ))}
      </ul>
      {flights.length > SHOWN && (
        <a class="more" href={href("find", { target, state: "live" })}>
          {flights.length - SHOWN} more
        </a>
      )}
    </section>
  ));
}

/** Rows of each group. */
const SHOWN = 5;

function byTarget(): ReadonlyMap<string, Signal<Flight>[]> {
  const groups = new Map<string, Signal<Flight>[]>();
  for (const flight of inView.value) {
    // The target of a delegation never changes.
    const { target } = flight.peek();
    const group = groups.get(target);
    if (group) group.push(flight);
    else groups.set(target, [flight]);
  }
  return groups;
}

function AgentList() {
  const found = agents.value;
  const all = useSignal(false);
  if (found === null) return null;
  if (found.length === 0) {
    return (
      <section aria-labelledby="agents-title">
        <h2 id="agents-title">Agents</h2>
        <Empty title="No agent yet" line="npx errand work --agent scout -- wc -w">
          An agent is a name with a queue. A worker asks for its work; this starts one:
          {!isOperator.value && " (it needs a token of the agent)"}
        </Empty>
      </section>
    );
  }
  const shown = all.value ? found : found.slice(0, MANY);
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">
        Agents <small>{count(found.length, "agent")}</small>
      </h2>
      <ul class="rows agent-rows">
        {shown.map((agent) => (
          <li key={agent.name}>
            <AgentRow agent={agent} />
          </li>
        ))}
      </ul>
      {shown.length < found.length && (
        <button
          type="button"
          class="quiet more"
          onClick={() => {
            all.value = true;
          }}
        >
          {found.length - shown.length} more
        </button>
      )}
    </section>
  );
}
