/** Publishes to a topic of ntfy: as JSON to the server's root, because headers carry only ASCII. */
import type { Channel, Notification } from "../../../schema/subscription.ts";
import type { Composed } from "../composed.ts";
import { linesOf } from "../lines.ts";
import type { HttpPost } from "./outcome.ts";

/** ntfy's priorities: 3 is the default, 5 the highest. */
const PRIORITIES: Readonly<Partial<Record<Notification["type"], number>>> = {
  question: 4,
  question_expiring: 5,
};

export function ntfyCall(
  { url, token }: Extract<Channel, { kind: "ntfy" }>,
  { notification, buttons, buttonUrl }: Composed,
): HttpPost {
  const { type, title, text, link, no_link } = notification;
  const topic = new URL(url);
  const name = topic.pathname.slice(topic.pathname.lastIndexOf("/") + 1);
  topic.pathname = topic.pathname.slice(0, -name.length);
  const body = JSON.stringify({
    ...{
      topic: name,
      title,
      message: linesOf([text, no_link ?? ""]) || title,
    },
    priority: PRIORITIES[type] ?? 3,
    ...(link !== null && { click: link }),
    ...(buttons.length > 0 && { actions: buttons.map((button) => toAction(button, buttonUrl)) }),
  });
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  return { url: topic.href, headers, body };
}

/** A button: ntfy's app sends the request. All who read the topic can press it, so the agent's settings decide whether there is one. */
const toAction = ({ decision, token }: Composed["buttons"][number], url: string) => ({
  ...{ action: "http", label: decision === "approve" ? "Approve" : "Deny", method: "POST", url, clear: true },
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ token, decision }),
});
