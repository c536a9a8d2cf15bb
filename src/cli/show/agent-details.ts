/** An agent as text for a person: its presence, its work and its limits. */
import { limitText } from "../../client/period-budgets.ts";
import { durationText, largestUnit, pausedWorkers } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import type { CliHost } from "../host.ts";
import { oneLine, withCommand } from "./output.ts";
import { wrapWidth } from "./terminal-width.ts";
import { wrapRows } from "./text.ts";
import { localTime } from "./time.ts";

export function agentDetails(host: CliHost, agent: Agent): string {
  const { name, description, delivery, presence, paused, counts, limits, accepts_from } = agent;
  const seen = presence.last_seen_at === null ? "never" : localTime(presence.last_seen_at);
  const rows = [
    ["agent", name],
    ["description", oneLine(description)],
    ["presence", `${presence.state}, ${presence.pollers} polling, last seen ${seen}`],
    ["queue", `${counts.waiting} queued${oldestText(agent)}, ${counts.delayed} delayed`],
    [
      "work",
      `${counts.working} running, ${counts.interrupted} waiting for an answer, ${counts.awaiting} for children`,
    ],
  ];
  if (presence.paused) rows.push(["alarm", oneLine(pausedWorkers(presence.paused))]);
  if (delivery.mode === "push") {
    const credentials = delivery.credentials_set ? ", with credentials" : "";
    rows.push(["pushed to", `${delivery.url ?? "its A2A server"}${credentials}`]);
  }
  if (paused) rows.push(["paused", `yes; resume with 'errand agent resume ${name}'`]);
  if (accepts_from) rows.push(["accepts from", accepts_from.join(" ")]);
  if (agent.approvals === "person") rows.push(["approvals", "not in advance"]);
  if (agent.votes) rows.push(["votes", votesSettingText(agent.votes)]);
  if (agent.tree_reads === "contents") rows.push(["tree reads", "contents"]);
  const weights = Object.entries(agent.delegator_weights ?? {}).map(([who, weight]) => `${who}=${weight}`);
  if (weights.length > 0) rows.push(["weights", oneLine(weights.join(" "))]);
  for (const period of ["day", "month"] as const) {
    const budget = agent.budgets?.[period];
    if (budget) rows.push([`budget a ${period}`, limitText(budget)]);
  }
  const risks = agent.risks.map(({ action, risk }) => `${action}=${risk}`).join(" ");
  if (risks !== "") rows.push(["risks", oneLine(risks)]);
  const notify = agent.notify && notifyText(agent.notify);
  if (notify) rows.push(["notify", notify]);
  if (agent.priority_ageing_seconds !== null)
    rows.push([
      "ageing",
      `a priority higher for every ${durationText(agent.priority_ageing_seconds * 1000)} of waiting`,
    ]);
  const turns = agent.serial_by === "context" ? ["one at a time"] : [];
  if (agent.sticky_seconds !== null)
    turns.push(`kept for its last worker for ${durationText(agent.sticky_seconds * 1000)}`);
  if (turns.length > 0) rows.push(["conversation", turns.join(", ")]);
  if (limits) {
    const running = limits.max_working === null ? "no limit on running" : `${limits.max_working} running`;
    rows.push([
      "lease",
      `${durationText(limits.lease_seconds * 1000)}, at most ${limits.max_attempts} attempts`,
    ]);
    rows.push(["limits", `${limits.max_waiting} queued, ${running}`]);
    rows.push(["questions", `open for ${durationText(limits.interrupt_ttl_seconds * 1000)}`]);
  }
  return withCommand(host, wrapRows(rows, wrapWidth(host)));
}

/** `2 approvals, by approver:*, not by the delegator`. */
function votesSettingText(votes: NonNullable<Agent["votes"]>): string {
  const { needed, by, not_by_delegator, remind_seconds, escalate_seconds, escalate_to } = votes;
  const parts = [
    needed === 1 ? "1 approval" : `${needed} approvals`,
    by.join() !== "*" && `by ${by.join(" ")}`,
    not_by_delegator && "not by the delegator",
    remind_seconds !== null && `reminded every ${durationText(remind_seconds * 1000)}`,
    escalate_seconds !== null &&
      escalate_to.length > 0 &&
      `after ${durationText(escalate_seconds * 1000)} also by ${escalate_to.join(" ")}`,
  ];
  return oneLine(parts.filter((part) => part !== false).join(", "));
}

/** What differs from the default, which is that only the agent's name leaves the broker. */
function notifyText({ contents, links, one_tap }: NonNullable<Agent["notify"]>): string {
  const parts = [
    contents.length > 0 && `what it asks by ${contents.join(", ")}`,
    links === "sign_in" && "links require sign-in",
    one_tap !== "none" && `buttons ${one_tap === "deny" ? "deny" : "approve and deny"} at once`,
  ];
  return parts.filter((part) => part !== false).join("; ");
}

function oldestText({ oldest_waiting_at: at }: Agent): string {
  return at ? `, the oldest for ${largestUnit(Date.now() - Date.parse(at))}` : "";
}

/** For a column: whether workers poll, and whether the agent or some of its workers are paused. */
export function presenceText({ presence, paused }: Pick<Agent, "presence" | "paused">): string {
  if (paused) return `${presence.state}, paused`;
  return presence.paused ? `${presence.state}, ${presence.paused.workers} paused` : presence.state;
}
