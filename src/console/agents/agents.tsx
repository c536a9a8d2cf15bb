import { useMemo, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { lazyFrom } from "../app/lazy-from.tsx";
import { href, route } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { hasFigures, useFigures } from "../data/figures.ts";
import { AgentColumns, AgentRow } from "../live/agent-row.tsx";
import { agentsByNeed } from "../live/agents-by-need.ts";
import { isOperator } from "../session/rights.ts";
import { CommandLine } from "../ui/command-line.tsx";
import { Empty } from "../ui/empty.tsx";
import { styles as headStyles } from "../ui/page-head.css";
import { News, useSteady } from "../ui/steady.tsx";
import { useSearch } from "../ui/use-search.tsx";
import { Windowed } from "../ui/windowed.tsx";
import { AgentPage } from "./agent-page.tsx";
import { styles } from "./agents.css";
import { AuditLog } from "./audit-log.tsx";
import { NewAgent } from "./new-agent.tsx";
import { Tokens } from "./tokens.tsx";

adopt(headStyles, styles);

const Schedules = lazyFrom(
  () => import("../schedules/schedules.tsx"),
  ({ Schedules: loaded }) => loaded,
);

const Rules = lazyFrom(
  () => import("../rules/rules.tsx"),
  ({ Rules: loaded }) => loaded,
);

const Notifications = lazyFrom(
  () => import("../notifications/notifications.tsx"),
  ({ Notifications: loaded }) => loaded,
);

/** All agents; with `?name=` one of them; schedules; rules; notifications; the operator's tokens and log. */
export function Agents() {
  const { params } = route.value;
  const name = params.get("name");
  const part = params.get("part");
  return (
    <>
      <nav class="tabs" aria-label="Administration">
        <Tab part={null} name="Agents" />
        <Tab part="schedules" name="Schedules" />
        <Tab part="rules" name="Rules" />
        <Tab part="notifications" name="Notifications" />
        {isOperator.value && <Tab part="tokens" name="Tokens" />}
        {isOperator.value && <Tab part="log" name="Log" />}
      </nav>
      {part === "schedules" ? (
        <Schedules />
      ) : part === "rules" ? (
        <Rules />
      ) : part === "notifications" ? (
        <Notifications />
      ) : part === "tokens" && isOperator.value ? (
        <Tokens />
      ) : part === "log" && isOperator.value ? (
        <AuditLog />
      ) : name !== null ? (
        <AgentPage key={name} name={name} />
      ) : (
        <AgentList />
      )}
    </>
  );
}

function Tab({ part, name }: { readonly part: string | null; readonly name: string }) {
  const isHere = route.value.params.get("part") === part;
  return (
    <a href={href("agents", part === null ? {} : { part })} aria-current={isHere ? "page" : undefined}>
      {name}
    </a>
  );
}

function AgentList() {
  const found = agents.value;
  const list = useRef<HTMLDivElement>(null);
  useFigures();
  const { agents: sorted } = useMemo(() => agentsByNeed(found ?? [], now.peek()), [found]);
  const { rows, waiting, showAll } = useSteady(list, sorted, ({ name }) => name);
  const { field, fitting } = useSearch(rows, "agent", ({ name }) => name);
  return (
    <section aria-label="Agents">
      <h1>
        Agents {found !== null && found.length > 0 && <small>{found.length.toLocaleString("en")}</small>}
      </h1>
      {isOperator.value && <NewAgent />}
      {found === null && <p class="loading">Reading the agents …</p>}
      {found?.length === 0 && (
        <Empty title="No agent yet" line={<CommandLine command="agent put scout" />}>
          An agent is a name with a queue, under which workers ask for work.
          {isOperator.value && " Create one above, or from a terminal:"}
        </Empty>
      )}
      {field}
      <div class={hasFigures.value ? "steady agents has-figures" : "steady agents"} ref={list}>
        <News of="agent" count={waiting} onShow={showAll} />
        {fitting.length > 0 && <AgentColumns />}
        <Windowed items={fitting} keyOf={({ name }) => name} kind="lines">
          {(agent) => <AgentRow agent={agent} href={href("agents", { name: agent.name })} />}
        </Windowed>
      </div>
    </section>
  );
}
