/** The events as lines: a run of reports of progress, or of the pieces of an artifact, is one line that opens. */
import type { DelegationEvent } from "../../../schema/event.ts";

export interface Line {
  readonly key: string;
  readonly event: DelegationEvent;
  /** The pause before it, in milliseconds. */
  readonly pauseMs: number;
  /** The events of the run that the line stands for, the last of which is `event`; 1 for an event alone. */
  readonly times: number;
  /** It is one of a run that is open. */
  readonly isInRun: boolean;
}

/** Events after each other with the same one are a run; empty: it stands alone. */
function runOf(event: DelegationEvent): string {
  if (event.status === "progress") return "progress";
  return event.status === "artifact" && event.artifact ? `artifact ${event.artifact.artifactId}` : "";
}

/** Oldest first. `open` has the keys of the runs that show their events. */
export function linesOf(
  events: readonly DelegationEvent[],
  open: ReadonlySet<string>,
  newestFirst: boolean,
): readonly Line[] {
  const groups: { readonly isRun: boolean; readonly lines: Line[] }[] = [];
  let run: Line[] = [];
  let runName = "";
  let before = Date.parse(events[0]?.at ?? "");
  for (const event of events) {
    const name = runOf(event);
    if (name === "" || name !== runName) {
      run = [];
      groups.push({ isRun: name !== "", lines: run });
    }
    runName = name;
    const at = Date.parse(event.at);
    run.push({ key: `${event.seq}`, event, pauseMs: at - before, times: 1, isInRun: false });
    before = at;
  }
  const lines: Line[] = [];
  for (const { isRun, lines: group } of newestFirst ? groups.reverse() : groups) {
    const [first] = group;
    const last = group.at(-1);
    if (first === undefined || last === undefined) continue;
    // It keeps its key as it grows.
    const key = isRun ? `run ${first.key}` : first.key;
    lines.push({ ...last, key, pauseMs: first.pauseMs, times: group.length });
    if (group.length === 1 || !open.has(key)) continue;
    for (const line of newestFirst ? group.reverse() : group) lines.push({ ...line, isInRun: true });
  }
  return lines;
}
