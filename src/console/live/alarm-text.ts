/** What is wrong with an agent, in a few words. */
import type { Alarm } from "../../client/alarms.ts";
import { largestUnit, pausedWorkers } from "../../client/words.ts";
import type { Presence } from "../../schema/presence.ts";
import { waitingText } from "./presence-text.ts";

const WHY: Readonly<Record<Exclude<Alarm["kind"], "workers_paused">, string>> = {
  paused: "paused",
  unreachable: "cannot be reached",
  no_worker: "no worker",
  all_busy: "all busy",
};

/**
 * `no worker, 38 wait 51 min`. `paused`: the paused workers of the agent, whose reason the worker wrote. `now` is in
 * milliseconds since 1970.
 */
export function alarmText(alarm: Alarm, paused: Presence["paused"], now: number): string {
  const { kind, waits, since, until = "", reason = "" } = alarm;
  if (kind === "workers_paused") return pausedWorkers(paused ?? { workers: 1, until, reason }, now);
  const long = since === null ? "" : ` ${largestUnit(now - Date.parse(since))}`;
  return `${WHY[kind]}, ${waitingText(waits)}${long}`;
}
