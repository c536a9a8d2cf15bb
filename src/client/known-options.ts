/**
 * Refuses options that a call does not have: the compiler does, but not everybody has one, and what a misspelt option asks
 * for would be lost. Left out of the console, which is compiled.
 */
import { nearestName } from "../util/similar.ts";
import type { DecideOptions } from "./answer.ts";
import type { BatchOptions } from "./batch.ts";
import type {
  AnswerOptions,
  CancelOptions,
  ControlOptions,
  DelegateOptions,
  GetOptions,
  ListOptions,
  TaskInput,
  WaitOptions,
  WatchOptions,
} from "./delegator-options.ts";
import type { ResultsOptions } from "./inbox.ts";

type Names<T> = Readonly<Record<keyof T, true>>;

const CONTROL: Names<ControlOptions & BatchOptions> = { signal: true };
const LIST: Names<ListOptions> = { pageSize: true, ...CONTROL };
const ANSWER: Names<AnswerOptions> = { idempotencyKey: true, ...CONTROL };
const DECIDE: Names<DecideOptions> = { text: true, data: true, interruptId: true, ...ANSWER };
const WATCH: Names<WatchOptions> = { after: true, ...CONTROL };
const DELEGATE: Names<DelegateOptions> = {
  ...{ idempotencyKey: true, waitSeconds: true, parentId: true, callback: true, notBefore: true },
  ...{ delaySeconds: true, deadline: true, ttlSeconds: true, startWithinSeconds: true, traceparent: true },
  ...CONTROL,
};
const GET: Names<GetOptions> = { waitSeconds: true, ...CONTROL };
const WAIT: Names<WaitOptions> = { timeoutSeconds: true, ...CONTROL };
const CANCEL: Names<CancelOptions> = { cascade: true, ...CONTROL };
const RESULTS: Names<ResultsOptions> = { follow: true, ...WATCH };

/** The names of the options, by call. */
const OPTIONS = {
  ...{ delegate: DELEGATE, delegateMany: CONTROL, get: GET, wait: WAIT, watch: WATCH, watchNodes: WATCH },
  ...{ list: LIST, answers: LIST, tree: LIST, results: RESULTS, nodes: CONTROL, cancel: CANCEL },
  ...{ answer: ANSWER, approve: DECIDE, deny: DECIDE, message: CONTROL, redrive: CONTROL },
} as const;

/** Members of the first argument of `delegate`. */
const TASK: Partial<Names<TaskInput>> = {
  ...{ target: true, task: true, message: true, context_id: true, priority: true, max_attempts: true },
  ...{ children_on_failure: true, budget: true, on_budget: true, metadata: true, auto_approve: true },
  result_schema: true,
};

/** Throws a TypeError that names the option and the one that was meant. */
export function requireKnown(call: keyof typeof OPTIONS, options: object): void {
  const known = Object.keys(OPTIONS[call]);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const isTask = call === "delegate" && nearestName(unknown, Object.keys(TASK));
  const nearest = known.find((one) => one.startsWith(unknown)) ?? nearestName(unknown, known);
  const advice = nearest
    ? `did you mean ${nearest}?`
    : isTask
      ? `${isTask} is a member of the first argument`
      : `it has ${known.join(", ")}`;
  throw new TypeError(`${call} has no option ${unknown}: ${advice}`);
}
