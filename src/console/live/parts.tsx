/** The parts of Live, which are loaded while the page reads what is live. */
import { useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { agents } from "../data/agents.ts";
import { inView } from "../data/delegations.ts";
import { useFigures } from "../data/figures.ts";
import { DemoNote } from "../demo/panel.tsx";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { CommandLine } from "../ui/command-line.tsx";
import { Empty } from "../ui/empty.tsx";
import { AgentTable } from "./agent-table.tsx";
import { Alarms } from "./alarms.tsx";
import { FirstSteps, useHasDelegations } from "./first-steps.tsx";
import { styles } from "./live.css";
import { headText } from "./tally.ts";
import { Work } from "./work.tsx";

adopt(styles);

/** Each part is in the one before, with all that is below it: while the reader is further down, it pushes nothing. */
export function Parts() {
  useFigures();
  const all = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  return (
    <div ref={all}>
      <DemoNote />
      <Alarms place={all} />
      <div ref={below}>
        <AgentTable place={below} />
        {inView.value.length === 0 ? <NothingLive /> : <Work />}
      </div>
    </div>
  );
}

/** How many there are, and in which states. */
export const HeadText = () => <>{headText.value}</>;

function NothingLive() {
  const found = agents.value;
  const hasDelegations = useHasDelegations();
  if (found === null || hasDelegations === null) return <p class="loading">Reading …</p>;
  if (found.length === 0 || !hasDelegations) return <FirstSteps />;
  const online = found.find(({ presence }) => presence.state === "online");
  if (!online) {
    return (
      <Empty
        title="Nothing in progress"
        line={<CommandLine command={`work --agent ${found[0]?.name} -- wc -w`} />}
      >
        What is delegated appears here until it ends. No worker is there to take any. This starts one that
        counts words{!isOperator.value && " (it needs a token of the agent)"}:
      </Empty>
    );
  }
  return (
    <Empty
      title="Nothing in progress"
      line={<CommandLine command={`delegate ${online.name} "how many words is this"`} />}
    >
      What is delegated appears here until it ends.
      {mayDelegate.value && " Delegate something in this page, or in a terminal:"}
    </Empty>
  );
}
