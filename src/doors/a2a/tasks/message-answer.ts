/**
 * The answer to a send as a Message instead of a Task: for an agent that answered with a bare Message, to a caller that
 * has not seen the task yet. Limit: the task exists all the same, and GetTask shows it.
 */
import type { SendMessageRequest } from "@a2a-js/sdk";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import type { Message } from "../../../schema/a2a.ts";
import type { Delegation } from "../../../schema/delegation.ts";
import { inTask, statusSourceOf } from "./task.ts";

/** Whether a Message may answer: the caller waits, starts the task, and no push notification shows it the task. */
export function mayAnswerWithMessage({ message, configuration }: SendMessageRequest): boolean {
  const { returnImmediately = false, taskPushNotificationConfig } = configuration ?? {};
  return !returnImmediately && !taskPushNotificationConfig && (message?.taskId ?? "") === "";
}

/** Null unless the agent answered with a bare Message. A2A has no Message without parts: that is shown as a Task. */
export function toMessageAnswer(record: StoredDelegation, delegation: Delegation): Message | null {
  const { state, reply } = delegation;
  if (record.get("a2a_form") !== "message" || state !== "completed" || !reply || reply.parts.length === 0)
    return null;
  return inTask(reply, statusSourceOf(delegation));
}
