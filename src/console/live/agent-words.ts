/** What the line of an agent shows, in words and numbers. */
import { costText } from "../../client/usage.ts";
import { largestUnit } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import type { AgentFigures } from "../../schema/stats.ts";
import { count } from "../ui/words.ts";
import type { PresenceText } from "./presence-text.ts";

type Counted = Pick<Agent, "counts" | "delivery" | "presence" | "slots">;

/** What its workers can do at once, as far as that is known. A push agent without a limit has no end. */
export function slotsOf({ counts, delivery, presence, slots }: Counted): { busy: number; all: number } {
  const { busy, free, most } = slots ?? { busy: counts.working, free: presence.pollers, most: null };
  return { busy, all: delivery.mode === "push" && most !== null ? Math.max(busy, most) : busy + free };
}

/** `last hour 12 ok, 3 failed, 2 canceled, 4.2 USD`. */
export function hourText({ completed, failed, rejected, canceled, costs }: AgentFigures): string {
  const ended = Object.entries({ ok: completed, failed: failed + rejected, canceled })
    .filter(([word, number]) => word === "ok" || number > 0)
    .map(([word, number]) => count(number, word, word));
  return [`last hour ${ended.join(", ")}`, ...costs.map(costText)].join(", ");
}

/** `2 wait for parts`. */
export const awaitingText = (awaiting: number): string =>
  count(awaiting, "waits for parts", "wait for parts");

/** The whole line in words. `now` is in milliseconds since 1970. */
export function rowText(
  { name, counts, oldest_waiting_at: oldest }: Agent,
  { text }: PresenceText,
  figures: AgentFigures | undefined,
  now: number,
): string {
  const { working, waiting, interrupted, awaiting, delayed } = counts;
  const parts = [
    text,
    working > 0 && count(working, "working", "working"),
    interrupted > 0 && count(interrupted, "asks", "ask"),
    awaiting > 0 && awaitingText(awaiting),
    waiting > 0 && oldest && `the oldest for ${largestUnit(now - Date.parse(oldest))}`,
    delayed > 0 && count(delayed, "delayed", "delayed"),
    figures && hourText(figures),
  ];
  return `${name}: ${parts.filter(Boolean).join(", ")}`;
}
