import { useComputed } from "@preact/signals";
import type { Agent } from "../../schema/agent.ts";
import { href } from "../app/route.ts";
import { isAway } from "../data/away.ts";
import { Age } from "../ui/age.tsx";
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
            oldest <Age at={oldestAt} />
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

export function PresenceOf({ agent }: { readonly agent: Pick<Agent, "presence" | "paused" | "delivery"> }) {
  const { presence, paused, delivery } = agent;
  const isOnline = presence.state === "online" && !isAway.value;
  return (
    <span class={`presence ${isAway.value ? "offline" : presence.state}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true" class={`mark ${isOnline ? "online" : "offline"}`}>
        <circle class={isOnline ? "solid" : "hollow"} cx="8" cy="8" r="4.5" />
      </svg>
      {isAway.value ? (
        "not known now"
      ) : isOnline ? (
        delivery.mode === "push" ? (
          "reachable"
        ) : (
          `${presence.pollers > 1 ? `${presence.pollers} ` : ""}polling`
        )
      ) : presence.last_seen_at === null ? (
        "never seen"
      ) : (
        <span>
          last seen <Age at={presence.last_seen_at} ago />
        </span>
      )}
      {paused && <b class="paused">‖ paused</b>}
    </span>
  );
}
