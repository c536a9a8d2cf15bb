/** The settings of new work, for APIs that have members of their own for the agent, the task and the conversation. */
import * as z from "zod";
import { delegateRequestSchema } from "./delegation.ts";

const {
  target: _agent,
  task: _text,
  message: _message,
  context_id: _conversation,
  metadata: _own,
  callback: _receiver,
  children_on_failure,
  ...settings
} = delegateRequestSchema.shape;

/** Every setting of `POST /v1/delegations` but the delegator's own metadata and the callback. */
export const delegateSettingsShape = {
  ...settings,
  children_on_failure: children_on_failure.unwrap().optional(),
};

/** `metadata.errand` of a send over A2A. Without a callback: A2A has push notification configs. */
export const a2aSettingsSchema = z.strictObject(delegateSettingsShape);
