/** What people approved in place of what the agent proposes. */
import { changesText } from "./change-text.ts";
import { boundedChanges, changesOf } from "./changes.ts";
import type { Interrupt } from "./delegation.ts";
import { withoutSecretChanges, withoutSecrets } from "./secrets.ts";
import { shownName, truncate } from "./text.ts";
import type { QuestionVotes } from "./votes.ts";

export type VotedAnswers = NonNullable<QuestionVotes["answers"]>;

const MAX_CHARS = 500;

type Request = Interrupt["requests"][number];

/** Whether the request is not simply approved as the agent proposes it. */
const isOther = ({ decision, text, data }: VotedAnswers[string]): boolean =>
  decision !== "approve" || text !== undefined || data !== undefined;

/**
 * What people have approved, by `request_id`, if it is not simply everything as the agent proposes it; to agree, send the
 * same. Undefined: nobody has approved, or all approve what is proposed.
 */
export function votedOtherwise({ votes }: Pick<Interrupt, "votes">): VotedAnswers | undefined {
  const { answers, given = [] } = votes ?? {};
  return answers && given.length > 0 && Object.values(answers).some(isOther) ? answers : undefined;
}

/**
 * `host "db1" → "db2"`, `deny`, or the option that was chosen: what the approvals say to each request that they do not simply
 * approve, after its id if there are several. May have control characters.
 */
export function votedAnswersText({ requests }: Pick<Interrupt, "requests">, answers: VotedAnswers): string {
  const texts = requests.flatMap((request) => {
    const answer = answers[request.request_id];
    if (answer === undefined || !isOther(answer)) return [];
    const text = answerText(request, answer);
    return [requests.length > 1 ? `${shownName(request.request_id)}: ${text}` : text];
  });
  return texts.join("; ");
}

function answerText({ action, schema }: Request, { decision, text, data }: VotedAnswers[string]): string {
  const changes = action && decision === "approve" ? changesOf(action.arguments, data) : [];
  if (changes.length > 0) return changesText(boundedChanges(withoutSecretChanges(changes, schema)));
  const value = data === undefined ? undefined : JSON.stringify(withoutSecrets(data, schema));
  const given = [decision === "deny" ? decision : undefined, text, value]
    .filter((part) => part !== undefined)
    .join(" ");
  return given.length > MAX_CHARS ? `${truncate(given, MAX_CHARS)}…` : given;
}
