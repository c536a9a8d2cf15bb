import type { Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { href } from "../app/route.ts";
import { agentOf, agents } from "../data/agents.ts";
import { inView, isLoaded, listedOf } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { News, useSteady } from "../ui/steady.tsx";
import { count } from "../ui/words.ts";
import { AgentRow, PresenceOf } from "./agent-row.tsx";
import { DelegationRow } from "./delegation-row.tsx";
import { agentsByNeed, MANY } from "./need.ts";
import { type Group, groups, tally, tallyText } from "./tally.ts";

/** The live delegations. */
export function Live() {
  const total = inView.value.length;
  return (
    <>
      <section aria-label="Live">
        <h1 id="live-title">Live {total > 0 && <small>{headOf(total)}</small>}</h1>
        {!isLoaded.value && total === 0 ? (
          <p class="loading">Reading what is live …</p>
        ) : total === 0 ? (
          <NothingLive />
        ) : total > MANY ? (
          <Groups />
        ) : (
          <DelegationList />
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
      <Empty title="Nothing is on its way" line={`errand work --agent ${name} -- wc -w`}>
        Every delegation appears here on its way from its delegator to its agent. An agent is a name with a
        queue; a worker takes the work. No worker is online. This starts one that counts words
        {!isOperator.value && " (it needs a token of the agent)"}:
      </Empty>
    );
  }
  return (
    <Empty title="Nothing is on its way" line={`errand delegate ${name} "how many words is this"`}>
      Every delegation appears here on its way from its delegator to its agent.
      {mayDelegate.value && " Delegate something from this page, or from a terminal:"}
    </Empty>
  );
}

/** Nothing moves in any group while one of them is in use. */
function Groups() {
  const list = useRef<HTMLDivElement>(null);
  const { rows, waiting, showAll } = useSteady(list, [...groups.value.values()], ({ target }) => target, {
    appends: () => true,
  });
  return (
    <div class="steady" ref={list}>
      <News count={waiting} onShow={showAll} />
      {rows.map((group) => (
        <OneGroup key={group.target} group={group} list={list} />
      ))}
    </div>
  );
}

interface GroupProps {
  readonly group: Group;
  /** All groups. */
  readonly list: { readonly current: Element | null };
}

function OneGroup({ group, list }: GroupProps) {
  const { target } = group;
  const agent = agentOf(target);
  // What asks or is in progress is added, rather than hidden.
  const appends = ({ value }: Group["rows"][number]) => value.state !== "submitted";
  const { rows } = useSteady(list, group.rows, (listed) => listed.peek().id, { appends });
  // Rows and groups that are over may still have their places.
  const live = rows.filter((listed) => listedOf(listed.peek().id) !== undefined);
  const more = (groups.value.get(target)?.total ?? 0) - live.length;
  return (
    <section class="group" aria-label={target}>
      <h2>
        {target} {agent && <PresenceOf agent={agent} />} <small>{tallyText(group)}</small>
      </h2>
      <ul class="rows">
        {rows.map((listed) => (
          <li key={listed.peek().id}>
            <DelegationRow listed={listed} />
          </li>
        ))}
      </ul>
      {more > 0 && (
        <a class="more" href={href("find", { target, state: "live" })}>
          {more.toLocaleString("en")} more
        </a>
      )}
    </section>
  );
}

function AgentList() {
  const found = agents.value;
  if (found === null) return null;
  if (found.length === 0) {
    return (
      <section aria-labelledby="agents-title">
        <h2 id="agents-title">Agents</h2>
        <Empty title="No agent yet" line="errand work --agent scout -- wc -w">
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
        {agentsByNeed(found)
          .slice(0, MANY)
          .map((agent) => (
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

/** The rows, newest first. They keep their places also while somebody reads further down. */
function DelegationList() {
  const list = useRef<HTMLDivElement>(null);
  const { rows, waiting, showAll } = useSteady(list, inView.value, idOf, { isRead: isScrolledDown });
  const show = () => {
    showAll();
    list.current?.closest(".column")?.scrollTo({ top: 0 });
  };
  return (
    <div class="steady" ref={list}>
      <News count={waiting} onShow={show} />
      <ul class="rows">
        {rows.map((listed) => (
          <li key={idOf(listed)}>
            <DelegationRow listed={listed} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const idOf = (listed: Signal<ListedDelegation>): string => listed.peek().id;

const isScrolledDown = (list: Element | null): boolean =>
  (list?.closest(".column")?.scrollTop ?? 0) > 8 || scrollY > 8;
