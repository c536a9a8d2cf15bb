/**
 * Chooses the rules that answer a question. A denial wins over every approval; a question with several requests is answered
 * only if each is covered, all by rules of one principal. Limit: it compares the rules as they were read; the script checks in
 * the step that answers whether they still hold (lifecycle/lua/lazy/rules.lua).
 */
import { answerIssues } from "../../schema/answer-rules.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import { fitOf, type Steps } from "./match.ts";
import { type StoredRule, stateOf } from "./stored-rule.ts";

type Question = Pick<Interrupt, "kind" | "requests">;

export interface Ruled {
  readonly request_id: string;
  readonly decision: Decision;
  readonly rule: StoredRule;
}

/**
 * `none`: no rules cover the whole question. `person`: a denial may apply, so only a person may approve it. `ruled`: the
 * answers, all by rules of one principal.
 */
export type Choice =
  | { readonly kind: "none" | "person" }
  | { readonly kind: "ruled"; readonly answers: readonly Ruled[]; readonly denies: boolean };

const NONE: Choice = { kind: "none" };
const PERSON: Choice = { kind: "person" };

/** Whether a rule could answer it: rules are about actions. */
export const isAboutActions = ({ kind, requests }: Question): boolean =>
  kind === "input" && requests.length > 0 && requests.every(({ action }) => action !== undefined);

export function chooseRules(rules: readonly StoredRule[], question: Question, now: number): Choice {
  if (!isAboutActions(question)) return NONE;
  const steps: Steps = { left: LIMITS.rule_steps.value };
  const active = rules.filter((rule) => stateOf(rule, now) === "active");
  const fitting = question.requests.map((request) => fittingRules(active, question.kind, request, steps));
  if (fitting.includes("person")) return PERSON;
  const candidates = fitting.flatMap((one) => (one === "person" ? [] : [one]));
  const denies = candidates.some(([first]) => first?.doc.decision === "deny");
  const answers = ofOnePrincipal(question, candidates);
  if (answers) return { kind: "ruled", answers, denies };
  return denies ? PERSON : NONE;
}

/** The rules that may answer the request, of one decision; empty: none. */
function fittingRules(
  rules: readonly StoredRule[],
  kind: Question["kind"],
  request: Question["requests"][number],
  steps: Steps,
): readonly StoredRule[] | "person" {
  const { action } = request;
  if (!action) return [];
  const fits = rules.map((rule) => ({ rule, fit: fitOf(rule.doc, action, steps) }));
  const found = (decision: Decision) =>
    fits.flatMap(({ rule, fit }) => (fit === "yes" && rule.doc.decision === decision ? [rule] : []));
  const isOffered = (decision: Decision) => answerIssues(kind, request, { decision }).length === 0;
  const denying = found("deny");
  if (denying.length > 0) return isOffered("deny") ? denying : "person";
  const isDoubtful = fits.some(({ rule, fit }) => fit === "unclear" && rule.doc.decision === "deny");
  // A denial may apply whose comparison was unclear or was cut short.
  if (isDoubtful || steps.left < 0) return "person";
  return isOffered("approve") ? found("approve") : [];
}

/** Null if no principal has rules for all requests, with as many uses left. */
function ofOnePrincipal(
  { requests }: Question,
  candidates: readonly (readonly StoredRule[])[],
): readonly Ruled[] | null {
  const [first = []] = candidates;
  for (const by of new Set(first.map(({ doc }) => doc.by))) {
    const planned = new Map<string, number>();
    const isLeft = ({ id, uses, max_uses }: StoredRule) =>
      max_uses === null || uses + (planned.get(id) ?? 0) < max_uses;
    const answers = requests.flatMap(({ request_id }, at): Ruled[] => {
      const rule = candidates[at]?.find((one) => one.doc.by === by && isLeft(one));
      if (!rule) return [];
      planned.set(rule.id, (planned.get(rule.id) ?? 0) + 1);
      return [{ request_id, decision: rule.doc.decision, rule }];
    });
    if (answers.length === requests.length) return answers;
  }
  return null;
}
