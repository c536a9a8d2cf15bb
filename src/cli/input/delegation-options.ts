/** The options that say how something is delegated, of `errand delegate` and of `errand schedule`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type AutoApprove, autoApproveSchema } from "../../schema/auto-approve.ts";
import type { Budget } from "../../schema/budget.ts";
import { callbackSchema } from "../../schema/callback.ts";
import type { DelegateInput } from "../../schema/delegation.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { contextIdSchema, httpUrlSchema } from "../../schema/values.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { keyValue, valid, wholeBetween } from "./arguments.ts";
import { budget } from "./budget.ts";
import { duration } from "./duration.ts";
import { jsonFrom } from "./task.ts";

export interface DelegationOptions {
  readonly priority?: number;
  readonly context?: string;
  readonly delay?: number;
  readonly ttl?: number;
  readonly startWithin?: number;
  readonly maxAttempts?: number;
  readonly meta?: Readonly<Record<string, string>>;
  readonly file?: string;
  readonly messageFile?: string;
  readonly keepChildren?: boolean;
  readonly budget?: Budget;
  readonly onBudget?: "ask" | "fail";
  readonly autoApprove?: AutoApprove;
  readonly resultSchema?: string;
  readonly callback?: string;
  readonly callbackSecret?: string[];
  readonly callbackToken?: string;
}

/** When and how often, and where the task comes from. */
export const addWorkOptions = (command: Command): Command =>
  command
    .option("--priority <n>", "0 to 9, higher first (default 5)", wholeBetween(0, 9))
    .option("--context <id>", "the conversation that the delegation belongs to", valid(contextIdSchema))
    .option("--delay <duration>", "do not start before this time has passed", duration)
    .option("--ttl <duration>", "fail it unless it finishes within this time (default: 7 days)", duration)
    .option("--start-within <duration>", "fail it unless a worker takes it within this time", duration)
    .option("--max-attempts <n>", "maximum number of attempts (default: the agent's)", wholeBetween(1, 100))
    .option("--meta <key=value>", "metadata for the agent; may be repeated", keyValue)
    .option("--file <path>", "read the task from a file")
    .option("--message-file <path>", "send an A2A Message from a JSON file; '-' reads stdin");

/** What becomes of its children, what it may use, who approves, and who is called. */
export const addTermsOptions = (command: Command): Command =>
  command
    .option("--keep-children", "let its children go on if it does not complete (default: cancel them)")
    .option(
      "--budget <amounts>",
      "what it and all under it may use: tokens=200000,cost=2USD,time=30m,attempts=5, or some of these",
      budget,
    )
    .addOption(
      new Option(
        "--on-budget <what>",
        "beyond --budget: fail it, or ask you for a larger budget (default: fail)",
      ).choices(["fail", "ask"]),
    )
    .option(
      "--auto-approve <actions>",
      "approve in advance: all, or names of actions, such as deploy,fs.*",
      autoApprove,
    )
    .option("--result-schema <path>", "the JSON Schema that the result must fit, from a file")
    .option(
      "--callback <url>",
      "send a POST to this URL when the delegation asks a question and when it ends",
      callbackUrl,
    )
    .option("--callback-secret <secrets...>", "whsec_… to sign callbacks with; pass several to rotate them")
    .option("--callback-token <token>", "the bearer token of callbacks");

/** The members of a delegation that the options name, without the task. */
export async function delegationFields(
  host: CliHost,
  options: DelegationOptions,
): Promise<Partial<Omit<DelegateInput, "task" | "message">>> {
  const { priority, context, delay, ttl, startWithin, maxAttempts, meta, resultSchema } = options;
  return {
    ...(priority !== undefined && { priority }),
    ...(context !== undefined && { context_id: context }),
    ...(delay !== undefined && { delay_seconds: delay }),
    ...(ttl !== undefined && { ttl_seconds: ttl }),
    ...(startWithin !== undefined && { start_within_seconds: startWithin }),
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(meta !== undefined && { metadata: meta }),
    ...(options.keepChildren && { children_on_failure: "keep" as const }),
    ...(options.budget && { budget: options.budget }),
    ...(options.onBudget && { on_budget: options.onBudget }),
    ...(options.autoApprove !== undefined && { auto_approve: options.autoApprove }),
    ...callback(options),
    ...(resultSchema !== undefined && { result_schema: await jsonFrom(host, resultSchema) }),
  };
}

/** `all`, or names of actions, separated by commas. */
function autoApprove(value: string): AutoApprove {
  if (value === "all") return true;
  const actions = value.split(",").map((name) => name.trim());
  const parsed = autoApproveSchema.safeParse({ actions });
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(
    "It must be 'all', or names of actions; '*' is allowed at the end of a name.",
  );
}

function callbackUrl(value: string): string {
  return valid(httpUrlSchema)(value);
}

function callback({ callback: url, callbackSecret: secret, callbackToken: token }: DelegationOptions) {
  if (url === undefined) {
    if (secret === undefined && token === undefined) return {};
    throw usageError("--callback-secret and --callback-token require --callback");
  }
  const given = { url, ...(secret !== undefined && { secret }), ...(token !== undefined && { token }) };
  const parsed = readAs(callbackSchema, given);
  if (parsed.success) return { callback: parsed.data };
  // A list has issues of its items; the option has one name.
  const [first] = issuesOf(parsed.error, { whole: "url" }).issues;
  throw usageError(`--callback-${first?.path.split(".")[0]}: ${first?.reason}`);
}
