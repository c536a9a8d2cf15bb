/** Whose approvals an agent needs: as fields for the operator, in words for everybody else. */
import type { AgentPatch } from "../../schema/agent.ts";
import type { Votes } from "../../schema/votes.ts";
import { count, largestUnit } from "../ui/words.ts";

type Setting = Votes | null | undefined;
type Text = (name: string) => string;

/** What an agent without the setting has. */
const NONE: Votes = {
  ...{ needed: 1, by: ["*"], not_by_delegator: false },
  ...{ remind_seconds: null, escalate_seconds: null, escalate_to: [] },
};

export function VotesFields({ votes }: { readonly votes: Setting }) {
  const { needed, by, not_by_delegator, remind_seconds, escalate_seconds, escalate_to } = votes ?? NONE;
  const minutes = (name: string, label: string, seconds: number | null) => (
    <label>
      <span>
        {label} <small>minutes</small>
      </span>
      <input
        type="number"
        name={name}
        min={1}
        max={43_200}
        step="any"
        placeholder="never"
        defaultValue={seconds === null ? "" : String(seconds / 60)}
      />
    </label>
  );
  return (
    <>
      <label>
        <span>
          Approvals that a question needs <small>each of another person</small>
        </span>
        <input type="number" name="votes_needed" min={1} max={10} required defaultValue={String(needed)} />
      </label>
      <label>
        <span>The delegator's own approval</span>
        <select name="votes_delegator">
          <option value="" selected={!not_by_delegator}>
            counts
          </option>
          <option value="not" selected={not_by_delegator}>
            does not count
          </option>
        </select>
      </label>
      <label class="wide">
        <span>
          Whose approvals count <small>of those who may answer; one pattern in a line: *, approver:ann</small>
        </span>
        <textarea name="votes_by" rows={2} defaultValue={by.join("\n")} />
      </label>
      {minutes("votes_remind", "Who has not approved is notified again every", remind_seconds)}
      {minutes("votes_escalate", "Others may approve, too, after", escalate_seconds)}
      <label class="wide">
        <span>
          These others <small>one pattern in a line</small>
        </span>
        <textarea name="votes_escalate_to" rows={2} defaultValue={escalate_to.join("\n")} />
      </label>
    </>
  );
}

/** The change of the fields; nothing if they are as before. The broker refuses what is no setting. */
export function votesPatch(before: Setting, text: Text): Pick<AgentPatch, "votes"> {
  const secondsOf = (name: string) => (text(name) === "" ? null : Math.round(Number(text(name)) * 60));
  const patterns = (name: string) => text(name).split(/\s+/).filter(Boolean);
  const by = patterns("votes_by");
  const votes: Votes = {
    needed: Number(text("votes_needed")),
    by: by.length > 0 ? by : NONE.by,
    not_by_delegator: text("votes_delegator") === "not",
    remind_seconds: secondsOf("votes_remind"),
    escalate_seconds: secondsOf("votes_escalate"),
    escalate_to: patterns("votes_escalate_to"),
  };
  if (isEqual(votes, before ?? NONE)) return {};
  return { votes: isEqual(votes, NONE) ? null : votes };
}

const isEqual = (a: Votes, b: Votes): boolean => parts(a) === parts(b);
const parts = ({ needed, by, not_by_delegator, remind_seconds, escalate_seconds, escalate_to }: Votes) =>
  JSON.stringify([needed, by, not_by_delegator, remind_seconds, escalate_seconds, escalate_to]);

/** `2 approvals, of approver:*, not of the delegator`. */
export function votesText(votes: Votes): string {
  const { needed, by, not_by_delegator, remind_seconds, escalate_seconds, escalate_to } = votes;
  return [
    count(needed, "approval"),
    by.join() !== "*" && `of ${by.join(", ")}`,
    not_by_delegator && "not of the delegator",
    remind_seconds !== null && `reminded every ${largestUnit(remind_seconds * 1000)}`,
    escalate_seconds !== null &&
      escalate_to.length > 0 &&
      `after ${largestUnit(escalate_seconds * 1000)} also of ${escalate_to.join(", ")}`,
  ]
    .filter(Boolean)
    .join(", ");
}
