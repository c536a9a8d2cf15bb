/** The demo that runs in this page, as the views show it. The demo itself is loaded when it starts. */
import { computed, signal } from "@preact/signals";
import { agents } from "../data/agents.ts";
import { isOperator } from "../session/rights.ts";

export interface Demo {
  readonly phase: "starting" | "running" | "removing";
  /** The delegation to watch; null: not there yet. */
  readonly id: string | null;
}
/** Null: none runs in this page. */
export const demo = signal<Demo | null>(null);

/** The names of its agents: with a random part, so that they are nobody else's. */
export const nameOfDemo = (role: "writer" | "checker", random: string): string => `demo-${role}-${random}`;
const NAME = /^demo-(?:writer|checker)-[0-9a-f]{6}$/;
export const ABOUT = "An agent of the console's demo";

/** Agents of a demo whose page ended without its consent, as when the browser was killed. Another page may run one. */
export const leftOver = computed(() => {
  if (!isOperator.value || demo.value !== null) return [];
  return (agents.value ?? [])
    .filter(({ name, description, presence }) =>
      NAME.test(name) && description.startsWith(ABOUT) ? presence.state !== "online" : false,
    )
    .map(({ name }) => name);
});
