import { useComputed } from "@preact/signals";
import { pausedWorkers } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import { href } from "../app/route.ts";
import { isAway } from "../data/away.ts";
import { Age } from "../ui/age.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { count } from "../ui/words.ts";
import { groups } from "./tally.ts";

/** An agent: whether somebody works under its name, and how much it has to do. */
export function AgentRow({ agent }: { readonly agent: Agent }) {
  const { name, counts } = agent;
  const oldestAt = useComputed(() => groups.value.get(name)?.oldestAt ?? null).value;
  return (
    <a class="agent-row" href={href("agents", { name })} data-row={name}>
      <span class="agent-name" title={name}>
        {name}
      </span>
      <PresenceOf agent={agent} />
      <span class="agent-counts">
        <Count number={counts.working} word="working" />
        <Count number={counts.interrupted} word="asking" />
        <Count number={counts.waiting} word="queued" />
        {counts.waiting > 0 && oldestAt !== null && (
          <span class="count">
            oldest for <Age at={oldestAt} />
          </span>
        )}
        {counts.delayed > 0 && <Count number={counts.delayed} word="delayed" />}
      </span>
    </a>
  );
}

function Count({ number, word }: { readonly number: number; readonly word: string }) {
  return (
    <span class={number === 0 ? "count none" : "count"}>
      <b>{number}</b> {word}
    </span>
  );
}

/** Whether work under the agent's name would be taken now, and if not, why. */
export function PresenceOf({
  agent,
}: {
  readonly agent: Pick<Agent, "presence" | "paused" | "delivery" | "counts">;
}) {
  const { presence, paused, counts } = agent;
  const isOnline = presence.state === "online";
  const sign = isAway.value
    ? "unseen"
    : paused
      ? "paused"
      : isOnline
        ? "online"
        : counts.working > 0
          ? "working"
          : "unseen";
  return (
    <span class={`presence ${sign}`}>
      <StateMark phase={sign} />
      <span>
        {isAway.value ? (
          "not known now"
        ) : (
          <>
            {paused && (
              <>
                <b>paused</b>,{" "}
              </>
            )}
            {isOnline ? (
              onlineText(agent)
            ) : counts.working > 0 ? (
              "busy"
            ) : presence.last_seen_at === null ? (
              "never seen"
            ) : (
              <>
                last seen <Age at={presence.last_seen_at} ago />
              </>
            )}
            {presence.paused && `; ${pausedWorkers(presence.paused)}`}
          </>
        )}
      </span>
    </span>
  );
}

/** The workers of a paused agent poll on and get nothing. */
function onlineText({
  presence: { pollers },
  paused,
  delivery,
}: Pick<Agent, "presence" | "paused" | "delivery">) {
  if (delivery.mode === "push") return "reachable";
  if (paused) return `${count(Math.max(1, pollers), "worker")} ready`;
  return pollers > 1 ? `${pollers} polling` : "polling";
}
