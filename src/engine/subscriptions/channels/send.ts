/** Sends one notification by one channel. Each kind of channel has a file of its own. */
import type { Channel, Notification } from "../../../schema/subscription.ts";
import type { Broker } from "../../broker.ts";
import { EgressRefusedError } from "../../outbound/egress.ts";
import { ntfyCall } from "./ntfy.ts";
import type { HttpPost, Sent } from "./outcome.ts";
import { slackCall } from "./slack.ts";
import { webhookCall } from "./webhook.ts";

export type Sends = Pick<Broker, "egress" | "hostLimiter" | "mailer" | "webPush">;

/** Never throws. The problem says nothing of what was sent or of secrets. */
export async function send(
  broker: Sends,
  owner: string,
  channel: Channel,
  notification: Notification,
): Promise<Sent> {
  const host = channel.kind === "email" ? "mail" : new URL(channel.url).host;
  const slot = broker.hostLimiter.acquire(host, `notifications of ${owner}`);
  if (typeof slot === "number") return { kind: "wait", ms: slot };
  try {
    if (channel.kind === "email") return await broker.mailer.send(channel.to, notification);
    return await post(broker, await callOf(broker, channel, notification));
  } catch (error) {
    return failed(problemOf(error));
  } finally {
    slot();
  }
}

const failed = (problem: string, gone = false): Sent => ({ kind: "failed", problem, gone });

function callOf(
  broker: Sends,
  channel: Exclude<Channel, { kind: "email" }>,
  notification: Notification,
): HttpPost | Promise<HttpPost> {
  switch (channel.kind) {
    case "webhook":
      return webhookCall(channel, notification);
    case "slack":
      return slackCall(channel, notification);
    case "ntfy":
      return ntfyCall(channel, notification);
    case "web_push":
      return broker.webPush.call(channel, notification);
  }
}

/** The receiver has gone for good: what RFC 8030 says of a push endpoint, and 410 of everything else. */
const GONE = [404, 410];

async function post({ egress }: Pick<Sends, "egress">, { url, headers, body }: HttpPost): Promise<Sent> {
  const status = await egress.post(url, { ...headers, "user-agent": "errand" }, body);
  if (status >= 200 && status < 300) return { kind: "delivered" };
  return failed(`It answered with status ${status}.`, GONE.includes(status));
}

/** Only the code: messages may quote the request. */
function problemOf(error: unknown): string {
  if (error instanceof EgressRefusedError) return `It may not be called: ${error.message}.`;
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
  return code === null ? "It gave no answer." : `It cannot be reached: ${code}.`;
}
