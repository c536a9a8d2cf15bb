/** The follow-ups, questions and answers of a delegation as text. Limit: files are not shown. */
import { type Message, textOf } from "../../schema/a2a.ts";
import { oneLine } from "./output.ts";
import { localTime } from "./time.ts";

type Kind = "question" | "answer" | "follow-up";

function kindOf({ role, metadata }: Message): Kind {
  if (role === "ROLE_AGENT") return "question";
  return metadata?.interrupt_id === undefined ? "follow-up" : "answer";
}

/** Whether it is an approval that another one voided, or that does not count any more. */
export type IsVoid = (message: Message) => boolean;

/** For each messageId, the sender and the time. Answers are not in it: their metadata has both. */
export type Senders = ReadonlyMap<string, { readonly by?: string | undefined; readonly at: string }>;

/** `by approver:ann at 2026-…`, without the parts that are unknown. */
function headOf(by: unknown, at: unknown): string {
  const who = typeof by === "string" ? `by ${oneLine(by)}` : "";
  const when = typeof at === "string" ? `at ${localTime(at)}` : "";
  return [who, when].filter(Boolean).join(" ");
}

/** `by approver:ann at 2026-…: approve, "but gently"`, without the parts that are unknown. */
function answerText({ parts, metadata = {} }: Message, max: number): string {
  const { decision, by, at, redacted } = metadata;
  const text = oneLine(textOf({ parts }), max);
  const data = parts.flatMap((part) =>
    part.data === undefined ? [] : [oneLine(JSON.stringify(part.data), max)],
  );
  const texts = [
    ...(typeof decision === "string" ? [oneLine(decision)] : []),
    ...(text === "" ? [] : [`"${text}"`]),
    ...data,
    ...(redacted === true ? ["(secret)"] : []),
  ];
  return [headOf(by, at), texts.join(", ")].filter(Boolean).join(": ");
}

/** One row per message, oldest first: its kind and its text. */
export function historyRows(
  history: readonly Message[],
  max: number,
  { senders = new Map(), isVoid = () => false }: { senders?: Senders; isVoid?: IsVoid | undefined } = {},
): [Kind, string][] {
  return history.map((message) => {
    const kind = kindOf(message);
    if (kind === "answer")
      return [kind, `${answerText(message, max)}${isVoid(message) ? " (no longer counts)" : ""}`];
    const { by, at } = senders.get(message.messageId ?? "") ?? {};
    const text = oneLine(textOf(message), max);
    return [kind, at === undefined ? text : `${headOf(by, at)}: "${text}"`];
  });
}
