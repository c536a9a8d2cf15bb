/** The follow-ups, questions and answers of a delegation as text. Limit: files are not shown. */
import { type Message, textOf } from "../../schema/a2a.ts";
import { oneLine } from "./output.ts";

type Kind = "question" | "answer" | "follow-up";

function kindOf({ role, metadata }: Message): Kind {
  if (role === "ROLE_AGENT") return "question";
  return metadata?.interrupt_id === undefined ? "follow-up" : "answer";
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
  const who = typeof by === "string" ? `by ${oneLine(by)}` : "";
  const when = typeof at === "string" ? `at ${oneLine(at)}` : "";
  const head = [who, when].filter(Boolean).join(" ");
  return [head, texts.join(", ")].filter(Boolean).join(": ");
}

/** One row per message, oldest first: its kind and its text. */
export function historyRows(history: readonly Message[], max: number): [Kind, string][] {
  return history.map((message) => {
    const kind = kindOf(message);
    return [kind, kind === "answer" ? answerText(message, max) : oneLine(textOf(message), max)];
  });
}
