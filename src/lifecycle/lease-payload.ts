/**
 * Renders the payload of a lease: the delegation, and an A2A SendMessage request for it. After a question was answered,
 * the request contains the newest answer instead of the first message; everything earlier is in the history.
 */
import * as z from "zod";
import { type Message, messageSchema } from "../schema/a2a.ts";
import { isBudgetQuestion } from "../schema/budget-question.ts";
import { givenAnswersSchema } from "../schema/interrupt.ts";
import { toInstant } from "../schema/values.ts";
import { type StoredDelegation, toFields } from "./stored-delegation.ts";

const historySchema = z.array(messageSchema);

/** The messages of a delegation's history, oldest first. */
export function historyOf(record: StoredDelegation): Message[] {
  return record.history.length === 0 ? [] : historySchema.parse(JSON.parse(`[${record.history.join(",")}]`));
}

/** The record with the secret answers filled in, for the holder of its lease. */
function withSecrets(record: StoredDelegation, secrets: readonly string[]): StoredDelegation {
  const fields = toFields(secrets);
  const history = historyOf(record).map((message) => {
    const { interrupt_id, request_id, redacted } = message.metadata ?? {};
    const kept = redacted === true ? fields.get(`answers:${interrupt_id}`) : undefined;
    return (kept && givenAnswersSchema.parse(JSON.parse(kept))[`${request_id}`]?.message) ?? message;
  });
  return record.withHistory(history.map((message) => JSON.stringify(message)));
}

/** An A2A message needs a part, so a decision without content becomes a data part. */
function partsOf({ parts, metadata }: Message): Message["parts"] {
  const decision = metadata?.decision;
  return parts.length > 0 || decision === undefined ? parts : [{ data: { decision } }];
}

/** The newest answer as one message; answers to several requests of a question are merged. */
function newestAnswer(record: StoredDelegation): Message | undefined {
  if (record.get("answered") === 0) return undefined;
  const answers = historyOf(record).filter(
    ({ role, metadata }) =>
      role === "ROLE_USER" &&
      metadata?.interrupt_id !== undefined &&
      !isBudgetQuestion(metadata.interrupt_id),
  );
  const last = answers.at(-1);
  if (!last) return undefined;
  const together = answers.filter(({ metadata }) => metadata?.interrupt_id === last.metadata?.interrupt_id);
  return { ...last, parts: together.flatMap(partsOf) };
}

/** The message for the agent, as JSON text. It has a contextId and never a taskId. */
function messageJson(record: StoredDelegation, lease_id: string): string {
  const answer = newestAnswer(record);
  const message = record.get("message");
  const context_id = record.get("context_id");
  // The broker writes the metadata as the last member, and the delegation's id last in it, so new members go before the
  // two closing braces.
  const end = `"delegation_id":"${record.id}"}}`;
  if (!answer && message.endsWith(end) && !/"(?:taskId|contextId|lease_id)"/.test(message)) {
    return `${message.slice(0, -2)},"lease_id":"${lease_id}"},"contextId":${JSON.stringify(context_id)}}`;
  }
  const { taskId: _dropped, ...rest } = answer ?? messageSchema.parse(JSON.parse(message));
  const metadata = { ...rest.metadata, delegation_id: record.id, lease_id };
  return JSON.stringify({ ...rest, contextId: context_id, metadata });
}

/** A lease as JSON text, for its holder; `secrets` as the script returns them, `awaited` as JSON text. */
export function leaseJson(
  stored: StoredDelegation,
  lease_id: string,
  secrets: readonly string[] = [],
  awaited?: string,
): string {
  const record = secrets.length === 0 ? stored : withSecrets(stored, secrets);
  const expires_at = toInstant(record.get("lease_expires_at") ?? 0);
  const head = `{"lease_id":"${lease_id}","expires_at":"${expires_at}","attempt":${record.get("attempt")}`;
  const trace =
    record.get("traceparent") === null ? "" : `,"traceparent":${JSON.stringify(record.get("traceparent"))}`;
  const message = messageJson(record, lease_id);
  const request = `{"jsonrpc":"2.0","id":"${lease_id}","method":"SendMessage","params":{"message":${message}}}`;
  const kept = record.get("checkpoint") === null ? "" : `,"checkpoint":${record.get("checkpoint")}`;
  const ends = awaited === undefined ? "" : `,"awaited":${awaited}`;
  return `${head},"delegation":${record.json},"request":${request}${trace}${kept}${ends}}`;
}
