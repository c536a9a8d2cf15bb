import { periodsText } from "../../client/period-budgets.ts";
import type { Agent } from "../../schema/agent.ts";
import { go, href, hrefOf } from "../app/route.ts";
import { agentOf, readAgents } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { listedOf } from "../data/delegations.ts";
import { momentsAt } from "../find/moments.ts";
import { PresenceOf } from "../live/agent-row.tsx";
import { isOperator, isSelf, mayDelegate, seesAll } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Age } from "../ui/age.tsx";
import { brokerUrl, CommandLine, CommandPlace } from "../ui/command-line.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { CopyLine } from "../ui/copy.tsx";
import { orGone } from "../ui/or-gone.ts";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { useAction } from "../ui/use-action.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { count, taskText } from "../ui/words.ts";
import { AgentSettings } from "./agent-settings.tsx";
import { PAUSE_MEANS } from "./pause-means.ts";
import { votesText } from "./votes-fields.tsx";

/** One agent: its presence and work, its settings, and how to start a worker. */
export function AgentPage({ name }: { readonly name: string }) {
  const {
    value: read,
    error,
    reload,
  } = useLoaded(name, ({ admin }, signal) => admin.getAgent(name, { signal }));
  const value = read && withWork(read);
  const changed = () => {
    reload();
    void readAgents();
  };
  return (
    <section class="stack" aria-labelledby="agent-title">
      <p>
        <a href={href("agents")}>All agents</a>
      </p>
      <h1 id="agent-title">
        <Said>{name}</Said>
      </h1>
      <Problem error={error} />
      {value === null ? (
        error === null && <p class="loading">Reading the agent …</p>
      ) : (
        <>
          {value.description !== "" && (
            <p class="text">
              <Said>{value.description}</Said>
            </p>
          )}
          <p class="parties">
            <PresenceOf agent={value} />
            <a href={href("find", { target: name, state: "live" })}>{loadOf(value)}</a>
            {value.counts.waiting > 0 && value.oldest_waiting_at && (
              <span class="dim">
                the oldest waits for <Age at={value.oldest_waiting_at} />
              </span>
            )}
          </p>
          {value.budgets && <p class="dim">Its budget: {periodsText(value.budgets)}.</p>}
          {value.votes && <p class="dim">Its questions need {votesText(value.votes)}.</p>}
          <p class="parties">
            {mayDelegate.value && <a href={href("delegate", { target: name })}>Delegate to {name}</a>}
            <a href={href("find", { target: name })}>All its delegations</a>
            <a
              href={href("find", {
                target: name,
                state: "failed",
                ended_since: momentsAt(now.value).yesterday,
              })}
            >
              Failed since yesterday
            </a>
            {seesAll.value && <a href={href("charts", { agent: name })}>Its charts</a>}
            {value.counts.waiting > 0 && value.counts.working === 0 && value.presence.state !== "online" && (
              <button type="button" class="link" onClick={showConnect}>
                How to start a worker
              </button>
            )}
          </p>
          {isOperator.value && <Controls agent={value} onChanged={changed} />}
          {(seesAll.value || isSelf(name)) && <Workers name={name} />}
          <AgentSettings agent={value} onChanged={changed} />
          <Connect name={name} cardUrl={value.a2a_card_url} />
        </>
      )}
    </section>
  );
}

/** Its work, presence and pause as they were read last. Its settings stay as they are in the form that somebody fills in. */
function withWork(agent: Agent): Agent {
  const latest = agentOf(agent.name);
  if (!latest) return agent;
  const { counts, presence, paused, oldest_waiting_at } = latest;
  return { ...agent, counts, presence, paused, oldest_waiting_at };
}

/** A link would change the fragment, which names the view. */
const showConnect = (): void => document.getElementById("connect-title")?.scrollIntoView();

const loadOf = ({ counts: { working, interrupted, awaiting, waiting, delayed } }: Agent): string =>
  [
    `${working} working, ${interrupted} asking`,
    ...(awaiting > 0 ? [`${awaiting} waiting for parts`] : []),
    `${waiting + delayed} queued`,
  ].join(", ");

interface ControlsProps {
  readonly agent: Agent;
  readonly onChanged: () => void;
}

function Controls({ agent, onChanged }: ControlsProps) {
  const { name, paused, counts } = agent;
  const { isRunning, error, run, again } = useAction();
  const admin = session.value?.connection.admin;
  const resume = async () => {
    await admin?.resumeAgent(name);
    onChanged();
  };
  const pause = async () => {
    await admin?.pauseAgent(name);
    onChanged();
  };
  const live = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const remove = async () => {
    await orGone(admin?.deleteAgent(name, { force: live > 0 }));
    await readAgents();
    go(href("agents"));
  };
  return (
    <div class="buttons actions">
      {paused ? (
        <button type="button" disabled={isRunning} onClick={() => void run(resume)}>
          Resume
        </button>
      ) : (
        <Confirm verb="Pause" question={`Pause ${name}?`} onConfirm={pause}>
          <p>{PAUSE_MEANS}</p>
        </Confirm>
      )}
      <Confirm verb="Delete" question={`Delete ${name}?`} danger onConfirm={remove}>
        <ul>
          <li>
            {live === 0
              ? "Nothing is delegated to it now."
              : `${count(live, "live delegation")} to it are canceled.`}
          </li>
          <li>Its tokens are revoked: its workers stop within a second.</li>
          <li>A new agent of this name sees nothing of its past. This cannot be undone.</li>
        </ul>
      </Confirm>
      <Problem error={error} again={again} />
      {paused && <p class="dim">Paused: its workers get nothing new, and what is delegated to it waits.</p>}
    </div>
  );
}

/** The lines to paste to work as the agent, and to reach it. */
function Connect({ name, cardUrl }: { readonly name: string; readonly cardUrl: string }) {
  const broker = brokerUrl();
  return (
    <section class="connect" aria-labelledby="connect-title">
      <h2 id="connect-title">Connect</h2>
      <CommandPlace />
      <p class="dim">
        A worker needs a token of agent:{name}, a client that delegates one of caller:NAME.
        {isOperator.value && (
          <>
            {" "}
            <a href={href("agents", { part: "tokens" })}>Create a token</a>
          </>
        )}
      </p>
      <h3>A worker: any command becomes the agent</h3>
      <CommandLine command={`work --agent ${name} -- COMMAND`} />
      <h3>An A2A client: the agent's card</h3>
      <CopyLine text={cardUrl} />
      <h3>An MCP client: Claude Code, and others by the address and the token</h3>
      <CopyLine
        text={`claude mcp add --transport http errand ${broker}/mcp --header "Authorization: Bearer $ERRAND_TOKEN"`}
      />
      <CopyLine text={`${broker}/mcp`} />
    </section>
  );
}

/** The processes that work under the agent's name. */
function Workers({ name }: { readonly name: string }) {
  // Read again with the agents.
  const { value } = useLoaded(
    name,
    ({ admin }, signal) => admin.listWorkers(name, { signal }),
    agentOf(name),
  );
  if (value === null || value.length === 0) return null;
  const held = value.reduce((sum, { delegations }) => sum + delegations.length, 0);
  return (
    <>
      <h2>
        Workers{" "}
        <small>
          {value.length}, with {count(held, "delegation")}
        </small>
      </h2>
      <ul class="workers">
        {value.map(({ id, last_seen_at, delegations }) => (
          <li key={id}>
            <Said>{id}</Said>{" "}
            <span class="dim">
              seen <Age at={last_seen_at} ago />
            </span>{" "}
            {delegations.map((delegation) => (
              <a key={delegation} href={hrefOf(delegation)}>
                <Said>{titleOf(delegation)}</Said>
              </a>
            ))}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Its task, if it is among those in view. */
function titleOf(id: string): string {
  const listed = listedOf(id)?.value;
  return listed ? taskText(listed) : `…${id.slice(-8)}`;
}
