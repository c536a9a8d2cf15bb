/** Sends one notification by one channel. Each kind of channel has a file of its own. */
import type { Channel } from "../../../schema/subscription.ts";
import type { Broker } from "../../broker.ts";
import { EgressRefusedError } from "../../outbound/egress.ts";
import type { Composed } from "../composed.ts";
import { ntfyCall } from "./ntfy.ts";
import type { HttpPost, Sent } from "./outcome.ts";
import { slackCall } from "./slack.ts";
import { webhookCall } from "./webhook.ts";

export type Sends = Pick<Broker, "egress" | "hostLimiter" | "mailer" | "webPush">;

/** `now`: by Redis' clock, ms. Never throws. `problem` contains nothing of what was sent, and no secret. */
export async function send(
  broker: Sends,
  owner: string,
  channel: Channel,
  message: Composed,
  now: number,
): Promise<Sent> {
  const host = channel.kind === "email" ? "mail" : new URL(channel.url).host;
  const slot = broker.hostLimiter.acquire(host, `notifications of ${owner}`);
  if (typeof slot === "number") return { kind: "wait", ms: slot };
  try {
    if (channel.kind === "email") return await broker.mailer.send(owner, channel.to, message.notification);
    const { kind } = channel;
    return await post(
      broker,
      await callOf(broker, channel, message, now),
      kind === "web_push" ? NO_BROWSER : GONE,
    );
  } catch (error) {
    return failed(problemOf(error));
  } finally {
    slot();
  }
}

const failed = (problem: string): Sent => ({ kind: "failed", problem, gone: false });

function callOf(
  broker: Sends,
  channel: Exclude<Channel, { kind: "email" }>,
  message: Composed,
  now: number,
): HttpPost | Promise<HttpPost> {
  switch (channel.kind) {
    case "webhook":
      return webhookCall(channel, message.notification, now);
    case "slack":
      return slackCall(channel, message.notification);
    case "ntfy":
      return ntfyCall(channel, message);
    case "web_push":
      return broker.webPush.call(channel, message);
  }
}

/** How long one receiver may delay the next notification. */
const TIMEOUT_MS = 10_000;
/** The receiver has gone for good. A 404 may be a proxy's, but RFC 8030 says that it ends a browser's subscription. */
const GONE = [410];
const NO_BROWSER = [404, 410];
/** The receiver does not accept this notification, for example because it is too large. */
const REFUSED = [400, 413, 422];

async function post(
  { egress }: Pick<Sends, "egress">,
  { url, headers, body }: HttpPost,
  gone: readonly number[],
): Promise<Sent> {
  const status = await egress.post(url, { ...headers, "user-agent": "errand" }, body, TIMEOUT_MS);
  if (status >= 200 && status < 300) return { kind: "delivered" };
  const problem = `It answered with status ${status}.`;
  return { kind: "failed", problem, gone: gone.includes(status), refused: REFUSED.includes(status) };
}

/** Uses only the code of an error: its message may quote the request. */
function problemOf(error: unknown): string {
  if (error instanceof EgressRefusedError) return `It may not be called: ${error.message}.`;
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
  return code === null ? "It gave no answer." : `It cannot be reached: ${code}.`;
}
