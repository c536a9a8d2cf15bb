/** The line of what failed in the last hour: how many, of which agents, and where to see why. */
import { Fragment } from "preact";
import { href } from "../app/route.ts";
import { FAILED_STATES, failures } from "../data/figures.ts";
import { StateMark } from "../ui/state-mark.tsx";
import { count } from "../ui/words.ts";

/** Agents that the line names. */
const NAMED = 3;

export function FailuresLine() {
  const { value } = failures;
  // It keeps its place while the reader is near.
  if (value === null) {
    return (
      <li class="alarm-line over">
        <StateMark phase="completed" />
        <span class="alarm-text" role="status">
          Nothing failed in the last hour
        </span>
      </li>
    );
  }
  const { total, agents, since } = value;
  const find = (target?: string) => href("find", { target, state: FAILED_STATES, ended_since: since });
  const others = agents.length - NAMED;
  return (
    <li class="alarm-line failures-line">
      <StateMark phase="failed" />
      <span class="alarm-text">
        <b>{count(total, "failed", "failed")}</b> in the last hour:{" "}
        {agents.slice(0, NAMED).map((agent, index) => (
          <Fragment key={agent}>
            {index > 0 && ", "}
            <a href={find(agent)}>{agent}</a>
          </Fragment>
        ))}
        {others > 0 && ` and ${count(others, "more agent")}`}
      </span>
      <a class="button" href={find()}>
        See why
      </a>
    </li>
  );
}
