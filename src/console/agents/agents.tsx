import { useSignal } from "@preact/signals";
import { href, route } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { AgentRow } from "../live/agent-row.tsx";
import { isOperator } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { useFirst } from "../ui/use-first.tsx";
import { count } from "../ui/words.ts";
import { AgentPage } from "./agent-page.tsx";
import { AuditLog } from "./audit-log.tsx";
import { NewAgent } from "./new-agent.tsx";
import { Tokens } from "./tokens.tsx";

/** All agents; with `?name=` one of them; the operator's tokens and log. */
export function Agents() {
  const { params } = route.value;
  const name = params.get("name");
  const part = params.get("part");
  return (
    <>
      {isOperator.value && (
        <nav class="tabs" aria-label="Administration">
          <a href={href("agents")} aria-current={part === null ? "page" : undefined}>
            Agents
          </a>
          <a href={href("agents", { part: "tokens" })} aria-current={part === "tokens" ? "page" : undefined}>
            Tokens
          </a>
          <a href={href("agents", { part: "log" })} aria-current={part === "log" ? "page" : undefined}>
            Log
          </a>
        </nav>
      )}
      {part === "tokens" && isOperator.value ? (
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

/** How many rows are drawn first, and with each click. */
const STEP = 100;
/** With more agents than this, a field finds one by its name. */
const MANY = 20;

function AgentList() {
  const text = useSignal("");
  const found = agents.value;
  const fitting = (found ?? []).filter(({ name }) => name.includes(text.value.trim().toLowerCase()));
  const { shown, more } = useFirst(fitting, STEP);
  return (
    <section aria-labelledby="agents-title">
      <h1 id="agents-title">
        Agents {found !== null && found.length > 0 && <small>{count(found.length, "agent")}</small>}
      </h1>
      {isOperator.value && <NewAgent />}
      {found === null && <p class="loading">Reading the agents …</p>}
      {found?.length === 0 && (
        <Empty title="No agent yet" line="npx errand agent put scout">
          An agent is a name with a queue, under which workers ask for work.
          {isOperator.value && " Create one above, or from a terminal:"}
        </Empty>
      )}
      {found !== null && found.length > MANY && (
        <input
          type="search"
          aria-label="Find by name"
          placeholder="Find by name"
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
          }}
        />
      )}
      <ul class="rows agent-rows">
        {shown.map((agent) => (
          <li key={agent.name}>
            <AgentRow agent={agent} />
          </li>
        ))}
      </ul>
      {found !== null && found.length > 0 && fitting.length === 0 && (
        <p class="dim">No agent has this in its name.</p>
      )}
      {more}
    </section>
  );
}
