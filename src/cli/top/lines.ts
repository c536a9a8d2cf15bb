/** A snapshot of `errand top` as lines, which fit a screen of the given width. */
import { largestUnit, timeLeft } from "../../client/words.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { shortIds } from "../input/short-id.ts";
import { presenceText } from "../show/agent-details.ts";
import { type Column, ListTable } from "../show/list-table.ts";
import { oneLine, type Painter } from "../show/output.ts";
import { questionText } from "../show/questions.ts";
import { cutTo } from "../show/text.ts";
import type { AgentRow, Snapshot } from "./read.ts";

export interface TopLines {
  readonly summary: readonly string[];
  /** The head of the table, then a line for each agent. */
  readonly agents: readonly string[];
  /** A heading, then a line for each question; empty if there are none. */
  readonly questions: readonly string[];
}

const seconds = (value: number | null): string => (value === null ? "-" : largestUnit(value * 1000));

const presencePaint = ({ presence, paused, counts }: AgentRow, { green, yellow, red, dim }: Painter) => {
  const isIdle = paused || presence.state !== "online";
  if (isIdle && counts.waiting > 0) return red;
  if (paused || presence.paused || presence.state === "stale") return yellow;
  return presence.state === "online" ? green : dim;
};

const AGENTS: readonly Column<AgentRow>[] = [
  { name: "agent", cell: ({ name }) => name },
  {
    name: "presence",
    cell: presenceText,
    paint: presencePaint,
  },
  { name: "workers", isMinor: true, cell: ({ workers }) => String(workers ?? "-") },
  { name: "queued", cell: ({ counts }) => String(counts.waiting) },
  { name: "delayed", isMinor: true, cell: ({ counts }) => String(counts.delayed) },
  { name: "running", cell: ({ counts }) => String(counts.working) },
  {
    name: "asking",
    cell: ({ counts }) => String(counts.interrupted),
    paint: ({ counts }, { yellow }) => (counts.interrupted > 0 ? yellow : (text) => text),
  },
  { name: "awaiting", isMinor: true, cell: ({ counts }) => String(counts.awaiting) },
  { name: "oldest", isMinor: true, cell: ({ oldest_seconds }) => seconds(oldest_seconds) },
];

interface Asked {
  readonly one: Delegation;
  readonly shortId: string;
  readonly now: number;
}

const QUESTIONS: readonly Column<Asked>[] = [
  { name: "question", cell: ({ shortId }) => shortId, isWhole: true },
  { name: "agent", cell: ({ one }) => one.target },
  { name: "for", cell: ({ one }) => one.delegator },
  {
    name: "left",
    cell: ({ one, now }) => timeLeft(Date.parse(one.interrupt?.expires_at ?? "") - now),
  },
  { name: "text", cell: ({ one }) => textOf(one), isText: true },
];

const textOf = ({ interrupt, task_preview }: Delegation): string =>
  (interrupt ? questionText(interrupt) : "") || task_preview;

export function topLines(host: CliHost, paint: Painter, snapshot: Snapshot, width: number): TopLines {
  const { agents, totals, questions, last_hour, at } = snapshot;
  const { sent, completed, failed, rejected, canceled, time_to_answer } = last_hour;
  const half = time_to_answer === null ? "" : `, median ${seconds(time_to_answer.median_seconds)}`;
  const oldest = totals.oldest_seconds === null ? "" : `, oldest ${seconds(totals.oldest_seconds)}`;
  const awaiting = totals.awaiting === 0 ? "" : `, ${totals.awaiting} awaiting`;
  const summary = [
    `agents     ${agents.length}, ${totals.online} online`,
    `work       ${totals.waiting} queued${oldest}, ${totals.delayed} delayed, ${totals.working} running, ${totals.interrupted} asking${awaiting}`,
    `last hour  ${sent} sent, ${completed} completed${half}, ${failed + rejected} failed, ${canceled} canceled`,
  ];
  const short = shortIds(questions.map(({ id }) => id));
  const asked = questions.map((one) => ({ one, shortId: short.get(one.id) ?? one.id, now: Date.parse(at) }));
  return {
    summary: summary.map((line) => cutTo(oneLine(line), width)),
    agents:
      agents.length > 0
        ? new ListTable(host, AGENTS, {}, width).lines(agents)
        : [paint.dim("No agents yet.")],
    questions: asked.length > 0 ? new ListTable(host, QUESTIONS, {}, width).lines(asked) : [],
  };
}
