/** A rule as text for a person: what it decides, with which arguments, until when, and its uses. */
import { constraintText, usesText } from "../../client/rule-words.ts";
import type { Rule } from "../../schema/rule.ts";
import type { CliHost } from "../host.ts";
import { oneLine, withCommand } from "./output.ts";
import { wrapWidth } from "./terminal-width.ts";
import { wrapRows } from "./text.ts";
import { localTime } from "./time.ts";

export const untilText = ({ expires_at }: Rule): string =>
  expires_at === null ? "revoked" : localTime(expires_at);

export function ruleDetails(host: CliHost, rule: Rule): string {
  const { id, by, agent, action, decision, state, note, created_at, revoked_at, last_uses } = rule;
  const others = rule.only_these_arguments ? "make it not fit" : "may be anything";
  const rows = [
    ["rule", id],
    ["by", by],
    ["state", revoked_at === null ? state : `${state} at ${localTime(revoked_at)}`],
    ["decision", decision],
    ["agent", agent],
    ["action", oneLine(action)],
    ...rule.arguments.map((one, at) => [at === 0 ? "arguments" : "", oneLine(constraintText(one))]),
    ["others", `other arguments ${others}`],
    ["until", untilText(rule)],
    ["uses", usesText(rule)],
    ...(note === null ? [] : [["note", oneLine(note)]]),
    ["created", localTime(created_at)],
    ...last_uses.map(({ at, delegation_id }, n) => [
      n === 0 ? "last" : "",
      `${localTime(at)}  ${delegation_id}`,
    ]),
  ];
  if (state === "active") rows.push(["", `stop it with 'errand rules revoke ${id}'`]);
  return withCommand(host, wrapRows(rows, wrapWidth(host)));
}
