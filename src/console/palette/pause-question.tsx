import { useLayoutEffect, useRef } from "preact/hooks";
import { PAUSE_MEANS } from "../agents/pause-means.ts";
import { readAgents } from "../data/agents.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";

interface Props {
  readonly agent: string;
  /** Also when nothing was done. */
  readonly onDone: () => void;
}

/** Asks before it pauses an agent, as the page of the agent does. */
export function PauseQuestion({ agent, onDone }: Props) {
  const keep = useRef<HTMLButtonElement>(null);
  // Another Enter changes nothing.
  useLayoutEffect(() => keep.current?.focus(), []);
  const { isRunning, error, run, again } = useAction();
  const pause = async () => {
    await session.value?.connection.admin.pauseAgent(agent);
    await readAgents();
    onDone();
  };
  return (
    <div class="pause-question">
      <h2>Pause {agent}?</h2>
      <p>{PAUSE_MEANS}</p>
      <Problem error={error} again={again} />
      <div class="buttons">
        <button type="button" ref={keep} onClick={onDone}>
          Keep as it is
        </button>
        <button type="button" class="primary" disabled={isRunning} onClick={() => void run(pause)}>
          Pause
        </button>
      </div>
    </div>
  );
}
