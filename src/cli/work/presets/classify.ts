/**
 * What becomes of a delegation after a preset's program has ended: one table, by facts that the program itself reports.
 * Work that was refused, put off or not answered is never completed. Limit: the text of a task or of a model decides
 * nothing; words count only where the program itself speaks, in an error or before its first event.
 */

/** What the program of a preset has reported. */
export interface Facts {
  /** Its name, for people. */
  readonly name: string;
  /** The answer of the model. */
  readonly answer?: string | undefined;
  /** The result that it hands over apart from the answer, as JSON; null: it ended without one. */
  readonly separateResult?: string | null | undefined;
  /** The model was asked. */
  readonly began?: boolean | undefined;
  /** Why the program failed, in its own words. */
  readonly failure?: string | undefined;
  /** The conversation that was to be continued does not exist. */
  readonly isGone?: boolean | undefined;
  /** The HTTP status of the provider with which the program failed. */
  readonly status?: number | undefined;
  /** Why the provider refuses all work, if the program reports it without a status. */
  readonly cause?: Cause | undefined;
  /** When the provider accepts work again, in milliseconds since 1970. */
  readonly resetsAt?: number | undefined;
  /** The tools that it wanted to use and may not, each with its input. */
  readonly refused?: readonly string[] | undefined;
  /** The tool that a hook put off, until somebody decides. */
  readonly deferred?: string | undefined;
  readonly stopReason?: string | undefined;
}

export type Cause = "signed_out" | "unpaid" | "limit" | "overloaded" | "unreachable";

/** How it ended. */
export interface End {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The last lines that it printed besides its events. */
  readonly printed: string;
  /** It was to continue a conversation. */
  readonly resumes: boolean;
}

export type Verdict =
  | { readonly kind: "completed"; readonly answer: string }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly message: string;
      /** Undefined: nothing says so; another attempt may help if the worker itself is at fault. */
      readonly retryable?: boolean;
    }
  /** No work would succeed now. */
  | { readonly kind: "unable"; readonly reason: string; readonly retryAt?: number | undefined }
  /** Begin a new conversation. */
  | { readonly kind: "gone" };

interface Row {
  readonly name: string;
  readonly if: (facts: Facts, end: End) => boolean;
  readonly verdict: (facts: Facts, end: End) => Verdict;
}

const LISTED = 20;

const CAUSE_OF: Readonly<Record<number, Cause>> = {
  401: "signed_out",
  402: "unpaid",
  403: "signed_out",
  429: "limit",
  503: "overloaded",
  529: "overloaded",
};

const WORDS: Record<Cause, (name: string) => string> = {
  signed_out: (name) => `${name} is not signed in, or may not use the provider`,
  unpaid: (name) => `the provider of ${name} wants a payment`,
  limit: (name) => `the provider of ${name} has reached its limit`,
  overloaded: (name) => `the provider of ${name} is overloaded`,
  unreachable: (name) => `${name} cannot reach its provider`,
};

/** What programs say when nobody has signed in, before they begin. */
const SIGNED_OUT =
  /\b(?:please run \/login|invalid api key|not (?:logged|signed) in|(?:log|sign) in (?:first|again)|codex login|set an auth method|no authentication information)\b/i;
const OUTSIDE_REPOSITORY = /^Not inside a trusted directory\b/m;

const hasFailed = ({ failure, answer }: Facts, { exitCode }: End): boolean =>
  exitCode !== 0 || failure !== undefined || answer === undefined;

const causeOf = ({ status, cause }: Facts): Cause | undefined => (status && CAUSE_OF[status]) || cause;

const failed = (code: string, message: string, retryable?: boolean): Verdict => ({
  kind: "failed",
  code,
  message,
  ...(retryable !== undefined && { retryable }),
});

/** The program's own words, or what it printed. */
function wordsOf({ failure, name }: Facts, { exitCode, signal, printed }: End): string {
  if (exitCode === 0) return failure ?? (printed || `${name} printed no answer`);
  return failure ?? (printed || (signal ? `killed by ${signal}` : `exit status ${exitCode}`));
}

/** The first row whose condition holds decides. */
const ROWS: readonly Row[] = [
  {
    name: "the provider refuses all work",
    if: (facts, end) => hasFailed(facts, end) && causeOf(facts) !== undefined,
    verdict: (facts) => {
      const cause = causeOf(facts) ?? "limit";
      const status = facts.status === undefined ? "" : ` (${facts.status})`;
      const retryAt = cause === "limit" ? facts.resetsAt : undefined;
      return { kind: "unable", reason: `${WORDS[cause](facts.name)}${status}`, retryAt };
    },
  },
  {
    name: "nobody has signed in, said before it began",
    if: (facts, end) =>
      end.exitCode !== 0 && !facts.began && !facts.isGone && SIGNED_OUT.test(wordsOf(facts, end)),
    verdict: ({ name }) => ({ kind: "unable", reason: WORDS.signed_out(name) }),
  },
  {
    name: "outside a repository",
    if: (facts, { printed }) => !facts.began && OUTSIDE_REPOSITORY.test(printed),
    verdict: ({ name }, { printed }) =>
      failed(
        "command_failed",
        `${printed}\n${name} works only in a Git repository or a folder that it trusts: start the worker in one, or pass ` +
          "'--skip-git-repo-check' after '--'.",
      ),
  },
  {
    name: "the conversation is gone",
    if: (facts, end) => end.resumes && (facts.isGone === true || (hasFailed(facts, end) && !facts.began)),
    verdict: () => ({ kind: "gone" }),
  },
  {
    name: "a tool waits for a decision",
    if: ({ deferred, stopReason }) => deferred !== undefined || stopReason === "tool_deferred",
    verdict: ({ name, deferred = "a tool" }) =>
      failed(
        "approval_needed",
        `${name} stopped before ${deferred}, because a hook put it off until somebody decides. Nobody can decide here: ` +
          "allow or deny it in the settings of the worker.",
        false,
      ),
  },
  {
    name: "tools were refused",
    if: ({ refused = [] }) => refused.length > 0,
    verdict: ({ name, refused = [] }) => {
      const more = refused.length > LISTED ? `, and ${refused.length - LISTED} more` : "";
      return failed(
        "permission_denied",
        `${name} was not allowed to use what the work needs: ${refused.slice(0, LISTED).join("; ")}${more}. ` +
          "The person who runs the worker can allow it in its settings or after '--'. The reply is what it said.",
        false,
      );
    },
  },
  {
    name: "the model refused",
    if: ({ stopReason }) => stopReason === "refusal",
    verdict: ({ name, answer = "" }) =>
      failed("model_refused", answer.trim() || `the model of ${name} refused the work`, false),
  },
  {
    name: "the answer was cut at the limit of tokens",
    if: ({ stopReason }) => stopReason === "max_tokens",
    verdict: ({ name }) =>
      failed("token_limit", `${name} reached the limit of tokens of a turn, so its answer is cut`, false),
  },
  {
    name: "the work was cut at the limit of requests",
    if: ({ stopReason }) => stopReason === "max_turn_requests",
    verdict: ({ name }) =>
      failed("turn_limit", `${name} reached its limit of requests to the model in one turn`, false),
  },
  {
    name: "the work was cut at the limit of its cost",
    if: ({ stopReason }) => stopReason === "max_budget",
    verdict: ({ name }) => failed("budget_limit", `${name} has spent what a run may cost`, false),
  },
  {
    name: "no result fitted its schema",
    if: ({ stopReason }) => stopReason === "unfit_result",
    verdict: (facts, end) => failed("result_invalid", wordsOf(facts, end), false),
  },
  {
    name: "the program canceled the turn, and nobody asked it to",
    if: ({ stopReason }) => stopReason === "cancelled",
    verdict: ({ name }) => failed("agent_canceled", `${name} canceled the work by itself`),
  },
  {
    name: "an error of the provider that may pass",
    if: (facts, end) => hasFailed(facts, end) && facts.status !== undefined && facts.status >= 500,
    verdict: (facts, end) => failed("command_failed", wordsOf(facts, end), true),
  },
  {
    name: "it failed",
    if: hasFailed,
    verdict: (facts, end) => failed("command_failed", wordsOf(facts, end)),
  },
  {
    name: "an empty answer",
    if: ({ answer = "" }) => answer.trim() === "",
    verdict: ({ name }) => failed("empty_answer", `${name} ended without an answer`),
  },
  {
    name: "an answer",
    if: () => true,
    verdict: ({ answer = "" }) => ({ kind: "completed", answer }),
  },
];

export function classify(facts: Facts, end: End): Verdict {
  const row = ROWS.find((one) => one.if(facts, end));
  if (row === undefined) throw new Error("no row of the table holds");
  return row.verdict(facts, end);
}
