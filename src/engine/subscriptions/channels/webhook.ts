/** A POST for programs, signed by the Standard Webhooks scheme. */
import type { Channel, Notification } from "../../../schema/subscription.ts";
import { sign } from "../../outbound/callbacks.ts";
import type { HttpPost } from "./outcome.ts";

type Webhook = Extract<Channel, { kind: "webhook" }>;

/** Signed by Redis' clock: a receiver refuses a timestamp that is minutes off, as that of a gateway's own clock may be. */
export function webhookCall(
  { url, secret, token }: Webhook,
  notification: Notification,
  now: number,
): HttpPost {
  const body = JSON.stringify(notification);
  const signed = sign(notification.id, body, secret === undefined ? [] : [secret], new Date(now));
  return {
    url,
    body,
    headers: { ...signed, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
  };
}
