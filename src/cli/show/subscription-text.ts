/** A subscription as text for a person: of what it tells, by which channels, and how each goes. */
import { durationText } from "../../client/words.ts";
import type { Subscription } from "../../schema/subscription.ts";
import type { CliHost } from "../host.ts";
import { oneLine, withCommand } from "./output.ts";
import { wrapWidth } from "./terminal-width.ts";
import { wrapRows } from "./text.ts";
import { localTime } from "./time.ts";

type ShownChannel = Subscription["deliver"][number];

/** `ntfy https://ntfy.sh/topic, after 10 min`. */
export function channelText({ kind, to, after_seconds }: ShownChannel): string {
  const after = after_seconds > 0 ? `, after ${durationText(after_seconds * 1000)}` : "";
  return oneLine(`${kind} ${to}${after}`);
}

/** Why it is in trouble, what waits, and when it last delivered one. */
function channelState({ state, problem, waiting, dropped, delivered_at }: ShownChannel): string {
  const parts = [
    problem ? `${state} since ${localTime(problem.since)}: ${problem.message}` : state,
    ...(waiting > 0 ? [`${waiting} waiting`] : []),
    ...(dropped > 0 ? [`${dropped} dropped`] : []),
    delivered_at === null ? "nothing delivered yet" : `last delivered ${localTime(delivered_at)}`,
  ];
  return oneLine(parts.join("; "));
}

const BY_TROUBLE = ["paused", "failing", "ok"] as const;

/** The state of the channel that is worst off. */
export const stateOf = ({ deliver }: Subscription): (typeof BY_TROUBLE)[number] =>
  BY_TROUBLE.find((state) => deliver.some((channel) => channel.state === state)) ?? "ok";

export function filterText({ filter: { agents = [], delegators = [], states = [] } }: Subscription): string {
  const parts = [
    agents.length > 0 && `agents ${agents.join(" ")}`,
    delegators.length > 0 && `delegators ${delegators.join(" ")}`,
    states.length > 0 && `states ${states.join(" ")}`,
  ];
  return oneLine(parts.filter((part) => part !== false).join(", ")) || "-";
}

export function subscriptionDetails(host: CliHost, subscription: Subscription): string {
  const { id, name, owner, events, deliver, quiet, digest_above, every_seconds, created_at } = subscription;
  const only = filterText(subscription);
  const rows = [
    ["subscription", id],
    ...(name === null ? [] : [["name", oneLine(name)]]),
    ["owner", owner],
    ["events", events.join(", ")],
    ...(only === "-" ? [] : [["only", only]]),
    ...deliver.flatMap((channel, n) => [
      [n === 0 ? "channels" : "", channelText(channel)],
      ["", `  ${channelState(channel)}`],
    ]),
    ...(quiet ? [["quiet", `${quiet.from} to ${quiet.to} (${oneLine(quiet.time_zone)})`]] : []),
    ["digest", `more than ${digest_above} that wait are sent as one`],
    ...(events.includes("no_worker")
      ? [["no_worker", `at most one for each agent in ${durationText(every_seconds * 1000)}`]]
      : []),
    ["created", localTime(created_at)],
  ];
  if (stateOf(subscription) !== "ok") rows.push(["", `try again with 'errand notify resume ${id}'`]);
  return withCommand(host, wrapRows(rows, wrapWidth(host)));
}
