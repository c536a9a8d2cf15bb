/** A delegation's question as text, and the commands that answer it. */
import { textOf } from "../../schema/a2a.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { oneLine } from "./output.ts";

type Request = Interrupt["requests"][number];
export type Decision = "approve" | "deny";

/** All requests of a question on one line. */
export function questionText({ requests }: Interrupt): string {
  return requests.map(({ message }) => textOf(message)).join(" / ");
}

/** One option of a request, which may be any JSON. */
export function optionText(option: unknown): string {
  return oneLine(typeof option === "string" ? option : JSON.stringify(option));
}

const choiceText = (options: readonly unknown[]): string => oneLine(options.map(optionText).join(" | "), 200);

/** A request on one line: `host: Which host? (a | b)`. */
export function requestLine({ request_id, message, options = [] }: Request, isOne: boolean): string {
  const text = oneLine(textOf(message), 200);
  const choice = options.length > 0 ? ` (${choiceText(options)})` : "";
  return (isOne ? "" : `${oneLine(request_id, 64)}: `) + text + choice;
}

/**
 * Explains why a decision cannot answer the question, as the end of a sentence, such as `asks for data`. Returns
 * undefined if it can. A request without options and schema may be a yes-or-no question, so a decision can answer it.
 */
export function whyDecisionIsNotEnough(
  decision: Decision,
  { kind, requests }: Interrupt,
  hasData = false,
): string | undefined {
  const [request, second] = requests;
  if (request === undefined || second !== undefined) {
    const ids = requests.map(({ request_id }) => oneLine(request_id, 64));
    return `asks ${requests.length} things at once: ${ids.join(", ")}`;
  }
  const { options = [], schema } = request;
  if (options.includes(decision)) return undefined;
  if (kind === "auth") return "asks for a credential";
  if (options.length > 0) return `offers ${choiceText(options)}`;
  return schema === undefined || hasData ? undefined : "asks for data";
}

/** The commands that answer the question, as part of a sentence. None of them has a secret as an argument. */
export function howToAnswer({ id, interrupt }: Pick<Delegation, "id" | "interrupt">): string {
  const answer = `'errand answer ${id}`;
  const [request, second] = interrupt?.requests ?? [];
  const isSecret = interrupt?.kind === "auth";
  const ways: string[] = [];
  if (second !== undefined) ways.push(`${answer}' on a terminal`, `${answer} --answers <path>'`);
  else if (isSecret) ways.push(`${answer}' on a terminal (hidden input)`, `${answer} - < <path>'`);
  else if (request?.schema !== undefined && !request.options?.length) ways.push(`${answer} --data <json>'`);
  else ways.push(`${answer} "…"'`);
  for (const decision of ["approve", "deny"] as const) {
    if (interrupt && whyDecisionIsNotEnough(decision, interrupt) === undefined) {
      ways.push(`'errand ${decision} ${id}'`);
    }
  }
  const last = ways.pop() ?? "";
  return ways.length === 0 ? last : `${ways.join(", ")} or ${last}`;
}
