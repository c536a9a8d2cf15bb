/** What people approved in place of what the agent proposes. */
import { changesText } from "./change-text.ts";
import { boundedChanges, changesOf } from "./changes.ts";
import type { Interrupt } from "./delegation.ts";
import { withoutSecretChanges, withoutSecrets } from "./secrets.ts";
import { truncate } from "./text.ts";
import type { QuestionVotes } from "./votes.ts";

export type VotedAnswers = NonNullable<QuestionVotes["answers"]>;

const MAX_CHARS = 500;

/** The approved answers, by `request_id`; to agree, send the same. Undefined: nobody has approved, or all approve what is proposed. */
export function votedOtherwise({ votes }: Pick<Interrupt, "votes">): VotedAnswers | undefined {
  const { answers, given = [] } = votes ?? {};
  const isOther = ({ text, data }: VotedAnswers[string]) => text !== undefined || data !== undefined;
  return answers && given.length > 0 && Object.values(answers).some(isOther) ? answers : undefined;
}

/** `host "db1" → "db2"`, for each request whose answer is not what is proposed. May have control characters. */
export function votedAnswersText({ requests }: Pick<Interrupt, "requests">, answers: VotedAnswers): string {
  const texts = requests.flatMap(({ request_id, action, schema }) => {
    const { decision, text, data } = answers[request_id] ?? {};
    if (text === undefined && data === undefined) return [];
    const changes = action && decision === "approve" ? changesOf(action.arguments, data) : [];
    if (changes.length > 0) {
      return [changesText(boundedChanges(withoutSecretChanges(changes, schema)))];
    }
    const given = text ?? JSON.stringify(withoutSecrets(data, schema));
    return [given.length > MAX_CHARS ? `${truncate(given, MAX_CHARS)}…` : given];
  });
  return texts.join("; ");
}
