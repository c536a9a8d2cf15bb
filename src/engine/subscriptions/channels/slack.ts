/** An incoming webhook of Slack or a compatible server. Limit: text only; a name or a question must not become a link or a mention. */
import type { Channel, Notification } from "../../../schema/subscription.ts";
import { linesOf } from "../lines.ts";
import type { HttpPost } from "./outcome.ts";

/** The characters with a meaning in Slack's text. */
const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
/** Compatible servers mention people by a bare `@`; a zero-width space after it prevents that. */
const escaped = (text: string): string =>
  text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? "").replaceAll("@", "@\u200b");

export function slackCall(
  { url }: Extract<Channel, { kind: "slack" }>,
  { title, text, link, no_link }: Notification,
): HttpPost {
  const lines = [
    `*${escaped(title)}*`,
    escaped(text),
    link === null ? escaped(no_link ?? "") : `<${link}|Open it>`,
  ];
  const body = JSON.stringify({ text: linesOf(lines), unfurl_links: false });
  return { url, headers: { "content-type": "application/json" }, body };
}
