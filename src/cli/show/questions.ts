/** A delegation's question as text, and the commands that answer it. */
import { textOf } from "../../schema/a2a.ts";
import { isDecidable, offeredDecisions } from "../../schema/answer-rules.ts";
import { type Decision, isDecision } from "../../schema/decision.ts";
import { type Action, type Delegation, type Interrupt, isTerminal } from "../../schema/delegation.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import { oneLine } from "./output.ts";

type Request = Interrupt["requests"][number];

const SHORT = 200;

/** All requests of a question on one line. */
export function questionText({ requests }: Interrupt): string {
  return requests.map(({ message }) => textOf(message)).join(" / ");
}

/** The actions that its requests propose, each cut: ` [deploy {"host":"db1"}]`. Empty: none. */
export function actionsText({ requests }: Pick<Interrupt, "requests">, max = SHORT): string {
  const texts = requests.flatMap(({ action }) => (action ? [oneLine(actionText(action), max)] : []));
  return texts.length === 0 ? "" : ` [${oneLine(texts.join("; "), 2 * max)}]`;
}

/** One option of a request, which may be any JSON. */
export function optionText(option: unknown): string {
  return oneLine(typeof option === "string" ? option : JSON.stringify(option));
}

const choiceText = (options: readonly unknown[], max = SHORT): string =>
  oneLine(options.map(optionText).join(" | "), max);

/** A proposed action, whole, because it is what an approval allows: `deploy {"host":"db1"}`. */
const actionText = ({ name, arguments: given }: Action): string =>
  oneLine(`${name} ${JSON.stringify(given)}`);

/**
 * A request on one line: `host: Which host? (a | b)`, `May I? [deploy {"host":"db1"}, editable]`. Its text and its options
 * have at most `max` characters each.
 */
export function requestLine(
  { request_id, message, options = [], action, edit }: Request,
  isOne: boolean,
  max = SHORT,
): string {
  const text = oneLine(textOf(message), max);
  const proposed = action ? ` [${actionText(action)}${edit === true ? ", editable" : ""}]` : "";
  const choice = options.length > 0 ? ` (${choiceText(options, max)})` : "";
  return (isOne ? "" : `${oneLine(request_id, 64)}: `) + text + proposed + choice;
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
  const { options = [], action } = request;
  if (options.includes(decision)) return undefined;
  if (kind === "auth" && action === undefined) return "asks for a credential";
  if (!offeredDecisions(kind, request).includes(decision)) return `offers ${choiceText(options)}`;
  return isDecidable(kind, request) || hasData ? undefined : "asks for data";
}

/** Whether the question names the decision as an answer: a proposed action, or an option. A plain question does not. */
export const isYesOrNo = (decision: Decision, { requests: [request, second] }: Interrupt): boolean =>
  second === undefined && (request?.action !== undefined || request?.options?.includes(decision) === true);

/** Why the question of this id is no longer open, such as `answered by approver:ann`. */
export function whyClosed({ history, state, error }: Delegation, { id }: Pick<Interrupt, "id">): string {
  const answer = history.findLast(({ metadata }) => metadata?.interrupt_id === id && metadata.by);
  // An approval is there, too, if the question ended without enough of them.
  const isEnded = isTerminal(state) && state !== "completed" && answer?.metadata?.vote === true;
  if (answer && !isEnded) return oneLine(`answered by ${String(answer.metadata?.by)}`);
  if (error?.code === "interrupt_expired") return "it has expired";
  return `the delegation is ${state}`;
}

/** Whether a text may be more than a comment. */
const takesText = ({ options = [], action }: Request): boolean =>
  options.length > 0 ? !options.every(isDecision) : action === undefined;

/** The commands that answer the question, as part of a sentence. None of them has a secret as an argument. */
export function howToAnswer(
  { id, interrupt }: Pick<Delegation, "id" | "interrupt">,
  isCounted = true,
): string {
  if (!isCounted) {
    const isOne = interrupt && whyDecisionIsNotEnough("deny", interrupt) === undefined;
    return `'errand ${isOne ? "deny" : "answer"} ${id}', only to deny it: your approval does not count`;
  }
  const answer = `'errand answer ${id}`;
  const [request, second] = interrupt?.requests ?? [];
  const isSecret = interrupt?.kind === "auth";
  const ways: string[] = [];
  if (interrupt && second !== undefined) {
    ways.push(`${answer}' on a terminal`, `${answer} --answers <path>'`);
    if (votedOtherwise(interrupt) !== undefined) ways.push(`${answer} --as-voted'`);
  }
  if (second !== undefined) return inWords(ways);
  if (isSecret) ways.push(`${answer}' on a terminal (hidden input)`, `${answer} - < <path>'`);
  else if (request?.schema !== undefined && !request.options?.length && !request.action) {
    ways.push(`${answer} --data <json>'`);
  } else if (request && takesText(request)) ways.push(`${answer} "…"'`);
  for (const decision of ["approve", "deny"] as const) {
    if (interrupt && whyDecisionIsNotEnough(decision, interrupt) === undefined) {
      const isOther = decision === "approve" && votedOtherwise(interrupt) !== undefined;
      ways.push(`'errand ${decision} ${id}${isOther ? " --as-voted" : ""}'`);
    }
  }
  if (request?.edit === true) ways.push(`'errand approve ${id} --data <arguments>'`);
  return inWords(ways);
}

const inWords = (ways: readonly string[]): string =>
  [ways.slice(0, -1).join(", "), ways.at(-1) ?? ""].filter(Boolean).join(" or ");
