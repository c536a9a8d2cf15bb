/** A notification as the channels get it. */
import type { Decision } from "../../schema/decision.ts";
import type { Notification } from "../../schema/subscription.ts";

/** A notification, and what its buttons send; no secret of a link is stored before it is sent. */
export interface Composed {
  readonly notification: Notification;
  /** Decisions that a press sends at once, and the secrets for them. */
  readonly buttons: readonly { readonly decision: Decision; readonly token: string }[];
  /** Where a press is sent. */
  readonly buttonUrl: string;
}
