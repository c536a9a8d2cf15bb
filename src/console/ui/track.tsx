/** The way of one delegation: a line from its delegator to its agent, with a dot that moves as the work does. */
import { adopt } from "../app/adopt.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { StateMark } from "./state-mark.tsx";
import { styles } from "./track.css";
import { PHASES, type Phase, shareOf } from "./words.ts";

adopt(styles);

export function Track({ delegation }: { readonly delegation: Pick<ListedDelegation, "state" | "progress"> }) {
  const phase = PHASES[delegation.state];
  const at = placeOf(delegation, phase);
  return (
    <span class={`track ${phase}`}>
      <span class="track-carrier" style={{ transform: `translateX(${(at * 100).toFixed(1)}%)` }}>
        <StateMark phase={phase} />
      </span>
    </span>
  );
}

const QUEUED_AT = 0.06;

/** Between 0, the delegator, and 1, the agent. */
function placeOf(delegation: Pick<ListedDelegation, "progress">, phase: Phase): number {
  if (phase === "queued") return QUEUED_AT;
  if (phase === "completed") return 1;
  if (phase === "failed") return QUEUED_AT;
  // Progress moves the dot through the middle, so that neither end is taken for a state.
  const share = shareOf(delegation);
  return share === undefined ? 0.5 : 0.15 + 0.75 * share;
}
