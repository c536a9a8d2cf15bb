/**
 * What an answer changed in the arguments of the proposed actions, as its event and the audit log show it: bounded, and
 * without secrets.
 */
import type { ChangesByRequest } from "../../schema/answered.ts";
import { boundedChanges, changesOf, MAX_CHANGES } from "../../schema/changes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import type { AnswerInput } from "../../schema/interrupt.ts";
import { withoutSecretChanges } from "../../schema/secrets.ts";

/** In the changes of one question, as JSON. */
const MAX_CHARACTERS = 8_192;

export type Asked = Pick<Interrupt, "kind"> & {
  readonly requests: readonly Pick<Interrupt["requests"][number], "request_id" | "action" | "schema">[];
};

/** What is said to each request of a question. */
export type Inputs = readonly (readonly [request_id: string, input: AnswerInput])[];

/** By request, without those that changed nothing; undefined if none did. At most `most` characters of JSON. */
export function shownChanges(
  { kind, requests }: Asked,
  inputs: Inputs,
  most: number = MAX_CHARACTERS,
): ChangesByRequest | undefined {
  // The answer to such a question is a secret.
  if (kind === "auth") return undefined;
  const shown: [string, ChangesByRequest[string]][] = [];
  let left = most;
  for (const [request_id, { decision, data }] of inputs) {
    const request = requests.find((one) => one.request_id === request_id);
    if (request?.action === undefined || decision !== "approve" || data === undefined) continue;
    const changes = changesOf(request.action.arguments, data);
    if (changes.length === 0) continue;
    const first = withoutSecretChanges(changes.slice(0, MAX_CHANGES), request.schema);
    const bounded = boundedChanges(first, left);
    left -= JSON.stringify(bounded.changes).length;
    shown.push([request_id, { ...bounded, total: changes.length }]);
  }
  return shown.length === 0 ? undefined : Object.fromEntries(shown);
}
