import { useComputed } from "@preact/signals";
import type { Agent } from "../../schema/agent.ts";
import { href } from "../app/route.ts";
import { isAway } from "../data/away.ts";
import { now } from "../data/clock.ts";
import { Age } from "../ui/age.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { type PresenceAgent, type PresenceText, presenceText } from "./presence-text.ts";
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
export function PresenceOf({ agent }: { readonly agent: PresenceAgent }) {
  const { sign, text }: PresenceText = isAway.value
    ? { sign: "unseen", text: "not known now" }
    : presenceText(agent, now.value);
  return (
    <span class={`presence ${sign}`}>
      <StateMark phase={sign} />
      <span>{text}</span>
    </span>
  );
}
