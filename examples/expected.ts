/**
 * What the demo delegates, and how each delegation must end. Limit: the folders are this repository's.
 */
import { type Delegation, type DelegationEvent, TERMINAL_EVENT_TYPES, textOf } from "../src/schema/index.ts";

export interface Job {
  readonly folder: string;
  readonly priority: number;
  readonly ends: "completed" | "failed" | "canceled";
  readonly code?: string;
}

/** In the order of submission; the agent gets them by priority. */
export const JOBS: readonly Job[] = [
  { folder: "src/lifecycle", priority: 5, ends: "completed" },
  { folder: "src/queue", priority: 9, ends: "completed" },
  { folder: "src/engine", priority: 7, ends: "completed" },
  { folder: "bench", priority: 2, ends: "completed" },
  { folder: "src/no-such-folder", priority: 6, ends: "failed", code: "no_such_folder" },
  { folder: "src/doors", priority: 1, ends: "canceled", code: "canceled" },
];

export function isLast({ type }: DelegationEvent): boolean {
  return TERMINAL_EVENT_TYPES.includes(type);
}

/** The reply's text, or the error. */
export function answerOf({ state, reply, error }: Delegation): string {
  if (state === "completed") return reply ? textOf(reply) : "";
  return error ? `${error.code}: ${error.message}` : "";
}

/** What is wrong with a delegation and its received events. */
export function problemsOf(job: Job, delegation: Delegation, seen: readonly DelegationEvent[]): string[] {
  const { state, error, version } = delegation;
  const mine = seen.filter(({ delegation_id }) => delegation_id === delegation.id);
  const had = (status: string) => mine.some((event) => event.status === status);
  const seqs = mine.map(({ seq }) => seq).join(" ");
  // The version counts the events: if all were received, no second final event can follow.
  const wanted = Array.from({ length: version }, (_, index) => index + 1).join(" ");
  const ends = mine.filter(isLast).length;
  const checks: readonly [boolean, string][] = [
    [state === job.ends, `it is ${state}, not ${job.ends}`],
    [error?.code === job.code, `its error is ${error?.code}, not ${job.code}`],
    [seqs === wanted, `the events ${seqs} were seen, not ${wanted}`],
    [mine[0]?.type === "DELEGATION_SENT", `its first event is ${mine[0]?.type}`],
    [ends === 1, `it ended ${ends} times`],
    [had("leased") === (job.ends !== "canceled"), "it was handed out, or was not, against expectation"],
    [job.ends !== "completed" || had("progress"), "no progress was seen"],
    [
      job.ends !== "completed" || answerOf(delegation).startsWith(`${job.folder}: `),
      "its answer is about something else",
    ],
  ];
  return checks.flatMap(([holds, otherwise]) => (holds ? [] : [`${job.folder}: ${otherwise}`]));
}

/** All of them waited when the agent started, so it must have got them by priority. */
export function problemsOfOrder(jobs: ReadonlyMap<string, Job>, seen: readonly DelegationEvent[]): string[] {
  const leased = seen.filter(({ status }) => status === "leased");
  const got = leased.map(({ delegation_id }) => jobs.get(delegation_id)?.priority).join(" ");
  const waiting = JOBS.filter(({ ends }) => ends !== "canceled").map(({ priority }) => priority);
  const wanted = waiting.sort((a, b) => b - a).join(" ");
  return got === wanted ? [] : [`the agent got the priorities ${got}, not ${wanted}`];
}
