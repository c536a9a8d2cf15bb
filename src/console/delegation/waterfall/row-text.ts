/** The words of a waterfall: of a row for screen readers, and of a bar or a mark that is pointed at. */
import { isTerminal } from "../../../schema/delegation.ts";
import { namesText } from "../../ui/names-text.ts";
import { count, elapsed, STATE_WORDS } from "../../ui/words.ts";
import { clockText } from "./axis.ts";
import type { Node } from "./node.ts";
import type { Question } from "./questions.ts";
import type { Row } from "./rows.ts";
import type { Span } from "./spans.ts";

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
] as const;

/** `350 ms`, `1.5 s`, `3 min 2 s`, `2 d 4 h`: at most two units. */
export function lengthText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const seconds = Math.floor(ms / 1000);
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  return UNITS.slice(at, at + 2)
    .map(([unit, size], index) => [
      Math.floor(index === 0 ? seconds / size : (seconds % (UNITS[at]?.[1] ?? 1)) / size),
      unit,
    ])
    .filter(([number]) => number !== 0)
    .map((part) => part.join(" "))
    .join(" ");
}

/** `coder: Fix the login test, completed in 3 min 2 s, attempt 2 of 3`. */
export function rowText(
  { node, below, isOpen }: Pick<Row, "node" | "below" | "isOpen">,
  now: number,
  agents: Agents = new Map(),
): string {
  const { target, task, attempt, max_attempts, awaits } = node;
  return [
    `${target}: ${task}`,
    stateText(node, now, awaits ? awaitedText(awaits.children, agents) : STATE_WORDS[node.state]),
    attempt > 1 && `attempt ${attempt} of ${max_attempts}`,
    !isOpen && below > 0 && `${below.toLocaleString("en")} under it are hidden`,
  ]
    .filter(Boolean)
    .join(", ");
}

function stateText({ state, created_at, finished_at }: Node, now: number, words: string): string {
  const from = Date.parse(created_at);
  if (isTerminal(state) && finished_at !== null)
    return `${words} in ${lengthText(Date.parse(finished_at) - from)}`;
  return `${words}, delegated ${elapsed(now - from)} ago`;
}

const LOOKS: Readonly<Record<Span["look"], string>> = {
  queued: "queued",
  pause: "may start later",
  working: "working",
  awaits: "waits for parts",
  asks: "waits for an answer",
  completed: "completed",
  failed: "failed",
  canceled: "canceled",
};

/** The agents by the ids of their delegations, as far as they are known. */
export type Agents = ReadonlyMap<string, string>;

/** `waits for 2 parts: scout, coder`. */
function awaitedText(ids: readonly string[], agents: Agents): string {
  const names = namesText(ids.flatMap((id) => agents.get(id) ?? []));
  return `waits for ${count(ids.length, "part")}${names && `: ${names}`}`;
}

/** `attempt 2 · failed · 0:12 – 3:14 · 3 min 2 s`. */
export function spanText(
  { look, from, to, attempt, awaited }: Span,
  { attempt: last }: Node,
  start: number,
  agents: Agents = new Map(),
): string {
  const since = clockText(Math.max(0, from - start));
  return [
    attempt !== null && last > 1 && `attempt ${attempt}`,
    awaited ? awaitedText(awaited, agents) : LOOKS[look],
    to === null ? `since ${since}` : `${since} – ${clockText(Math.max(0, to - start))}`,
    to !== null && lengthText(to - from),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** `0:12 asked: Which branch? · approved by ann after 2 min 4 s`. */
export function questionText(
  { askedAt, answeredAt, text, outcome, answer }: Question,
  start: number,
): string {
  const at = clockText(Math.max(0, (askedAt ?? answeredAt ?? start) - start));
  const asked = askedAt === null ? "a question" : `asked: ${text || "a question"}`;
  const after = askedAt === null || answeredAt === null ? "" : ` after ${lengthText(answeredAt - askedAt)}`;
  return `${at} ${asked} · ${outcome === "" ? "open" : `${outcome}${after}${answer && `: ${answer}`}`}`;
}

/** `Show 12 under coder`. */
export const toggleText = ({ isOpen, below, node }: Row): string =>
  `${isOpen ? "Hide" : "Show"} ${count(below, "part")} of ${node.target}`;
