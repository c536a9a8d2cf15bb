/** The status line of a wait for a delegation: state, progress bar, step, time left. */
import { durationText, timeLeft } from "../../client/words.ts";
import type { Progress } from "../../schema/delegation.ts";
import { oneLine } from "./output.ts";
import { cutTo, displayWidth } from "./text.ts";

export interface WaitStatus {
  readonly state: string;
  readonly attempt?: number | undefined;
  readonly progress?: Progress | null | undefined;
  /** Why no worker has it. */
  readonly why?: string | undefined;
}

interface Times {
  /** Since the wait began. */
  readonly elapsedMs: number;
  /** Since the status was reported. */
  readonly ageMs: number;
}

const BAR = 10;

/** Whole seconds, rounded, because a timer may fire a moment early. */
export const elapsedText = (ms: number): string => durationText(Math.max(1, Math.round(ms / 1000)) * 1000);

/** `[####------]` */
export function bar(done: number, total: number): string {
  const filled = Math.max(0, Math.min(BAR, Math.floor((done / total) * BAR)));
  return `[${"#".repeat(filled)}${"-".repeat(BAR - filled)}]`;
}

/** `waiting 12 s: working [####------] 4/10 index: reading, about 2 min left`. If it is too long, the step is cut. */
export function waitText(status: WaitStatus, { elapsedMs, ageMs }: Times, columns: number): string {
  const { state, attempt = 1, progress, why } = status;
  const { done, total, current_step, message, eta_seconds } = progress ?? {};
  const head = [
    `waiting ${elapsedText(elapsedMs)}: ${oneLine(state)}${attempt > 1 ? `, attempt ${attempt}` : ""}`,
    done !== undefined && total !== undefined && total > 0 && bar(done, total),
    done !== undefined && `${done}/${total ?? "?"}`,
  ];
  const left = eta_seconds === undefined ? 0 : eta_seconds * 1000 - ageMs;
  const start = head.filter(Boolean).join(" ");
  const end = left > 0 ? `, about ${timeLeft(left)} left` : "";
  const step = [current_step, message, why].flatMap((text) => oneLine(text ?? "") || []).join(": ");
  const space = columns - displayWidth(start) - displayWidth(end) - 1;
  const separator = why === undefined ? " " : ": ";
  const middle = step === "" ? "" : separator + cutTo(step, Math.max(0, space - separator.length + 1));
  return cutTo(start + middle + end, columns);
}
