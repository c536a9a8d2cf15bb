/** The parts of Live, which are loaded while the page reads what is live. */
import { useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { agents } from "../data/agents.ts";
import { inView } from "../data/delegations.ts";
import { useFigures } from "../data/figures.ts";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { AgentTable } from "./agent-table.tsx";
import { Alarms } from "./alarms.tsx";
import { styles } from "./live.css";
import { Work } from "./work.tsx";

adopt(styles);

/** Each part is in the one before, with all that is below it: while the reader is further down, it pushes nothing. */
export function Parts() {
  useFigures();
  const all = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  return (
    <div ref={all}>
      <Alarms place={all} />
      <div ref={below}>
        <AgentTable place={below} />
        {inView.value.length === 0 ? <NothingLive /> : <Work />}
      </div>
    </div>
  );
}

function NothingLive() {
  const [first] = agents.value ?? [];
  const name = first?.name ?? "scout";
  if (!agents.value?.some(({ presence }) => presence.state === "online")) {
    return (
      <Empty title="Nothing is on its way" line={`errand work --agent ${name} -- wc -w`}>
        Every delegation appears here on its way from its delegator to its agent. An agent is a name with a
        queue; a worker takes the work. No worker is online. This starts one that counts words
        {!isOperator.value && " (it needs a token of the agent)"}:
      </Empty>
    );
  }
  return (
    <Empty title="Nothing is on its way" line={`errand delegate ${name} "how many words is this"`}>
      Every delegation appears here on its way from its delegator to its agent.
      {mayDelegate.value && " Delegate something from this page, or from a terminal:"}
    </Empty>
  );
}
