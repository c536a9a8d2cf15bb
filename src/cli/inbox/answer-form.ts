/**
 * The answer to a question while a person types it: one field for each request, or a comment for a decision. The form
 * keeps its texts when it is left, and when the broker refuses the answer.
 */

import type { Answer, Answers } from "../../client/answer.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { parseExact } from "../../schema/exact-numbers.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { takesComment, votedAnswer } from "../input/as-voted.ts";
import {
  type Body,
  inputsOf,
  isDoubtful,
  misfits,
  notAChoice,
  type Request,
  refusalReasons,
  toBody,
} from "../input/typed-answer.ts";
import { voidedIn, voidedOf, voidsText, withOthers } from "../input/voids.ts";
import { isMisfit } from "../open-question.ts";
import { recoveryFor } from "../recovery.ts";
import type { Key } from "../screen/keys.ts";
import { TextField } from "../screen/text-field.ts";
import { oneLine } from "../show/output.ts";
import { votedChanges, votersText, votesLine } from "../show/votes.ts";

/** `edit` approves an action with other arguments; `agree` approves what others have approved. */
export type Mode = "answer" | "approve" | "deny" | "edit" | "agree";

export class AnswerForm {
  interrupt: Interrupt;
  readonly mode: Mode;
  readonly #fields: ReadonlyMap<Request, TextField>;
  /** The requests that still need an answer, or another one. */
  #open: readonly Request[];
  #at = 0;
  /** The text that another Enter confirms. */
  #doubtful: string | undefined;
  readonly #principal: string;
  /** The answer, with the approvals that it voids, that another Enter confirms. */
  #voiding: string | undefined;
  problems: readonly string[] = [];
  isSending = false;

  /** `principal`: who answers. */
  constructor(interrupt: Interrupt, mode: Mode, principal: string) {
    this.interrupt = interrupt;
    this.#principal = principal;
    this.mode = mode;
    const { requests } = interrupt;
    this.#open = mode === "answer" ? requests : requests.slice(0, 1);
    this.#fields = new Map(
      this.#open.map((request) => [
        request,
        new TextField(mode === "edit" ? JSON.stringify(request.action?.arguments ?? {}) : ""),
      ]),
    );
  }

  get request(): Request | undefined {
    return this.#open[this.#at];
  }

  get field(): TextField | undefined {
    return this.request && this.#fields.get(this.request);
  }

  get isSecret(): boolean {
    return this.interrupt.kind === "auth";
  }

  /** The prompt of the field. */
  get label(): string {
    const { request, mode, interrupt } = this;
    if (request === undefined) return "";
    const action = request.action && oneLine(request.action.name, 64);
    const { votes } = interrupt;
    const voters = votersText({ votes });
    const voted = votedChanges(interrupt);
    const others = withOthers(interrupt, this.#principal);
    const changes = votedChanges(others);
    if (mode === "agree")
      return `approve the same as ${voters}${voted ? ` (${voted})` : ""}? ${takesComment(interrupt) ? "With a comment or without" : "Without a comment"}`;
    if (mode === "approve" && changes !== undefined)
      return `approve what the agent proposes? This voids the approvals of ${votersText(others)}. With a comment or without`;
    if (mode === "edit") return `approve ${action ?? "it"} with these arguments, as a JSON object`;
    if (mode !== "answer")
      return action ? `${mode} ${action}? With a comment or without` : `${mode}, with a comment or without`;
    const { requests, kind } = interrupt;
    const place = `${requests.indexOf(request) + 1}/${requests.length} ${oneLine(request.request_id, 64)}, `;
    const proposed = action ? ` to ${action}` : "";
    return `${requests.length > 1 ? place : ""}answer${proposed} (${inputsOf(kind, request)})`;
  }

  /** Returns `send` if the answer is complete, and `leave` if the person goes back. */
  press(key: Key): "send" | "leave" | undefined {
    if (this.isSending) return undefined;
    if (key.name === "escape") return "leave";
    if (key.name === "enter") return this.#enter();
    if (key.name === "tab" || key.name === "shift+tab") this.#move(key.name === "tab" ? 1 : -1);
    else if (key.name === "up" || key.name === "down") this.#choose(key.name === "down" ? 1 : -1);
    else if (this.field?.press(key)) this.problems = [];
    return undefined;
  }

  answer(): Answer | Answers {
    const { mode, interrupt } = this;
    const [first] = interrupt.requests;
    if (mode === "edit") return { decision: "approve", data: parsed(this.field?.text ?? "") };
    if (mode === "agree") return votedAnswer(interrupt, { text: this.field?.text.trim() || undefined });
    if (mode !== "answer") {
      const text = this.field?.text.trim() ?? "";
      return { decision: mode, ...(text !== "" && { text }) };
    }
    if (interrupt.requests.length === 1 && first) return this.#body(first);
    const bodies = interrupt.requests.map((request) => [request.request_id, this.#body(request)]);
    return { answers: Object.fromEntries(bodies) };
  }

  /** The question as it is now. Returns false if the approvals of others changed, so that the person reads it again. */
  isUnchanged(now: Interrupt): boolean {
    const before = this.interrupt;
    this.interrupt = now;
    if (JSON.stringify(before.votes?.answers) === JSON.stringify(now.votes?.answers)) return true;
    this.problems = [
      `The approvals have changed meanwhile: ${votesLine(now) ?? "none"}. Press Enter again to send it.`,
    ];
    return false;
  }

  /** Shows why the answer was not accepted. Only what does not fit is asked for again. */
  refused(error: unknown, id: string): void {
    this.isSending = false;
    if (!(error instanceof ErrandApiError)) throw error;
    const reasons = isMisfit(error) ? refusalReasons(error) : [];
    this.problems =
      reasons.length > 0 ? reasons : [`${error.message} ${recoveryFor(error).replaceAll("<id>", id)}`];
    if (!isMisfit(error) || this.mode !== "answer") return;
    this.#open = misfits(this.interrupt.requests, error);
    this.#at = 0;
    this.#doubtful = undefined;
  }

  #body(request: Request): Body {
    return toBody(this.#fields.get(request)?.text.trim() ?? "", request);
  }

  #enter(): "send" | undefined {
    const problem = this.#problem();
    this.problems = problem === undefined ? [] : [problem];
    if (problem !== undefined) return undefined;
    if (this.#at + 1 < this.#open.length) {
      this.#move(1);
      return undefined;
    }
    const voiding = this.#voidingText();
    if (voiding === undefined) return "send";
    this.problems = [voiding];
    return undefined;
  }

  /** Asks once whether the answer may void approvals of others; the mode `approve` has asked already. */
  #voidingText(): string | undefined {
    const { mode, interrupt } = this;
    if (mode === "approve" || mode === "deny" || mode === "agree") return undefined;
    const answer = this.answer();
    const voided = voidedOf(voidedIn(interrupt, answer), this.#principal);
    const seen = JSON.stringify([answer, voided]);
    if (voided.length === 0 || this.#voiding === seen) return undefined;
    this.#voiding = seen;
    return `${voidsText(interrupt, voided)}. Press Enter again to send it.`.replace(/^t/, "T");
  }

  /** Why the field is not complete. */
  #problem(): string | undefined {
    const { request, field, mode, interrupt } = this;
    const text = field?.text.trim() ?? "";
    if (mode === "agree" && text !== "" && !takesComment(interrupt))
      return "A comment would make it another answer: delete the text.";
    if (request === undefined || ["approve", "deny", "agree"].includes(mode)) return undefined;
    if (mode === "edit") return isObject(parsed(text)) ? undefined : "The arguments are not a JSON object.";
    if (text === "") return "Type an answer first, or go back with Esc.";
    const refused = notAChoice(text, interrupt.kind, request);
    if (refused !== undefined) return refused;
    if (!isDoubtful(text, interrupt.kind, request) || text === this.#doubtful) return undefined;
    this.#doubtful = text;
    return `'${oneLine(text)}' is not a decision. Type approve or deny, or press Enter again to send it as text.`;
  }

  #move(by: number): void {
    this.#at = Math.min(this.#open.length - 1, Math.max(0, this.#at + by));
    this.#doubtful = undefined;
  }

  /** Types the number of the next option. */
  #choose(by: number): void {
    const count = this.mode === "answer" ? (this.request?.options?.length ?? 0) : 0;
    if (count === 0) return;
    const now = Number(this.field?.text) || (by > 0 ? 0 : count + 1);
    this.field?.set(String(1 + ((now - 1 + by + count) % count)));
    this.problems = [];
  }
}

/** Undefined for a text that is not JSON, or has a number that loses digits. */
function parsed(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}
