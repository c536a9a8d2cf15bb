/** A notification as a channel sends it. */
import type { Decision } from "../../schema/decision.ts";
import type { Notification } from "../../schema/subscription.ts";

/** A notification, and what its buttons send. It is composed for each try, so no lane or job holds the secret of a link. */
export interface Composed {
  readonly notification: Notification;
  /** Decisions that a press sends at once, and the secrets for them. */
  readonly buttons: readonly { readonly decision: Decision; readonly token: string }[];
  /** Where a press is sent. */
  readonly buttonUrl: string;
}
