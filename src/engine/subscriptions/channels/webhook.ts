/** A POST for programs, signed by the Standard Webhooks scheme. */
import type { Channel, Notification } from "../../../schema/subscription.ts";
import { sign } from "../../outbound/callbacks.ts";
import type { HttpPost } from "./outcome.ts";

type Webhook = Extract<Channel, { kind: "webhook" }>;

export function webhookCall({ url, secret, token }: Webhook, notification: Notification): HttpPost {
  const body = JSON.stringify(notification);
  const signed = sign(notification.id, body, secret === undefined ? [] : [secret]);
  return {
    url,
    body,
    headers: { ...signed, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
  };
}
