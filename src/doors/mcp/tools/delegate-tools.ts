/** Tools that delegate. Limit: a wait ends before a minute; the delegation continues. */
import { type InputRequiredResult, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod";
import { warn } from "../../../engine/after-move.ts";
import { cancel } from "../../../engine/delegations/cancel.ts";
import { type Delegated, delegate } from "../../../engine/delegations/delegate.ts";
import { toDelegation } from "../../../engine/delegations/parse.ts";
import { read } from "../../../engine/delegations/read.ts";
import { now } from "../../../engine/events/subscribe.ts";
import { answeredParts, answerPart } from "../../../engine/questions/answer-parts.ts";
import { formatCursor } from "../../../events/cursor.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import { autoApproveSchema } from "../../../schema/auto-approve.ts";
import { budgetSchema, onBudgetSchema } from "../../../schema/budget.ts";
import { DEFAULT_PRIORITY, delegateRequestSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { jsonObjectSchema } from "../../../schema/json-object.ts";
import { agentNameSchema, contextIdSchema, delegationIdSchema } from "../../../schema/values.ts";
import { toErrandError } from "../../http/problem.ts";
import { check } from "../../http/route.ts";
import type { McpContext } from "../context.ts";
import { isDismissed, toAnswers, toInputRequests } from "../elicitation.ts";
import { finalOutput, toTaskHandle } from "../tasks.ts";
import { delegationViewShape, toDelegationView, viewToText } from "./delegation-view.ts";
import { type DirectResult, defineTool, type Tool, type ToolOutput } from "./tool.ts";
import { CALLERS } from "./visibility.ts";
import { DEFAULT_WAIT_SECONDS, waitSchema, waitWithProgress } from "./wait.ts";

/** The arguments of both tools. */
export const delegateShape = {
  agent: agentNameSchema.describe("The agent's name, as shown by discover_agents."),
  task: z
    .string()
    .min(1)
    .describe(
      "The complete task. The agent does not see this conversation, so include all context it needs.",
    ),
  context_id: contextIdSchema.optional().describe("A label that groups delegations of one conversation."),
  parent_id: delegationIdSchema
    .optional()
    .describe(
      "The id of the delegation that you are working on, if any. The new delegation becomes its child, ends at its deadline at the latest, and is canceled with it.",
    ),
  children_on_failure: z
    .enum(["cancel", "keep"])
    .optional()
    .describe("What becomes of its own children if it does not complete. Default: cancel."),
  budget: budgetSchema
    .optional()
    .describe(
      "What it and everything under it may use together: tokens, cost with its currency, seconds, attempts, or some of these. Beyond it, it fails with budget_exceeded.",
    ),
  on_budget: onBudgetSchema
    .optional()
    .describe(
      "ask: beyond its budget you are asked for a larger one, and answer with answer_task. Default: fail.",
    ),
  priority: z.int().min(0).max(9).optional().describe("0 to 9; higher goes first. Default: 5."),
  delay_seconds: z
    .number()
    .min(0)
    .max(31_536_000)
    .optional()
    .describe("Start no earlier than this many seconds from now."),
  ttl_seconds: z
    .number()
    .positive()
    .max(31_536_000)
    .optional()
    .describe("Fail if not completed within this many seconds. Default: 7 days."),
  start_within_seconds: z
    .number()
    .positive()
    .max(31_536_000)
    .optional()
    .describe("Fail if no worker starts within this many seconds."),
  auto_approve: autoApproveSchema
    .or(z.literal(false))
    .optional()
    .describe(
      'Approve the agent\'s proposals in advance, if the user wants that: true for all, or {"actions": ["deploy", "fs.*"]} for actions with these names.',
    ),
  result_schema: jsonObjectSchema
    .optional()
    .describe("A JSON Schema that the result must fit. The result is then the data part of the reply."),
  metadata: jsonObjectSchema.optional().describe("Your own data, passed to the agent unchanged."),
  idempotency_key: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Any text. A repeated call with the same key returns the first call's delegation."),
};
/** What the REST API has besides. */
const meant = Object.keys(delegateRequestSchema.shape).filter((name) => !(name in delegateShape));
type DelegateInput = z.output<z.ZodObject<typeof delegateShape>>;

const output = {
  ...delegationViewShape,
  /** An earlier call with the same key created it. */
  replayed: z.boolean(),
  /** Whether a worker polls for the agent. */
  presence: z.string(),
};

/** `first`: what is read before; if it fails, the caller may repeat the call as after any other failure. */
async function submit(
  context: McpContext,
  input: DelegateInput,
  first?: () => Promise<void>,
): Promise<Delegated> {
  const { broker, principal, request } = context;
  const { agent, idempotency_key, auto_approve, ...rest } = input;
  const asked = { target: agent, ...rest, ...(auto_approve && { auto_approve }) };
  const delegateRequest = check(delegateRequestSchema, asked, "arguments");
  const idempotencyKey = idempotency_key ?? context.idempotencyKeyFor(input);
  const { traceparent } = context;
  try {
    await first?.();
    return await delegate(broker, principal, delegateRequest, {
      idempotencyKey,
      body: { ...delegateRequest, priority: delegateRequest.priority ?? DEFAULT_PRIORITY },
      traceparent,
    });
  } catch (error) {
    const refused = toErrandError(error, broker.log, request.requestId);
    if (refused.context.details?.outcome !== "unknown") throw refused;
    // Only a retry with this key can find out whether the work was accepted.
    const details = { ...refused.context.details, idempotency_key: idempotencyKey };
    throw new ErrandError(refused, refused.message, { ...refused.context, details });
  }
}

async function show(context: McpContext, record: StoredDelegation, replayed: boolean): Promise<ToolOutput> {
  const delegation = toDelegation(record);
  if (record.finished) {
    const final = finalOutput(delegation);
    return { ...final, data: { ...final.data, replayed } };
  }
  const data = toDelegationView(delegation);
  const { state } = await context.broker.presence.cached(delegation.target);
  const warning =
    delegation.state === "submitted" && state === "offline"
      ? `\nNo worker polls for ${delegation.target} now. The delegation waits in the queue.`
      : "";
  return { text: `${viewToText(data)}${warning}`, data: { ...data, replayed, presence: state } };
}

/** Asks the client to answer the open question; its next call has the answers, and the delegation's id as requestState. */
async function askClient(
  { broker, principal }: Pick<McpContext, "broker" | "principal">,
  record: StoredDelegation,
  refusal: string | undefined,
): Promise<InputRequiredResult | undefined> {
  const delegation = toDelegation(record);
  const { interrupt } = delegation;
  if (interrupt === null) return undefined;
  const answered = await answeredParts(broker, principal, record, interrupt.id);
  const inputRequests = toInputRequests(delegation, answered, refusal);
  if (Object.keys(inputRequests).length === 0) return undefined;
  return inputRequired({ inputRequests, requestState: record.id });
}

interface Resumed {
  readonly record: StoredDelegation;
  /** The user dismissed the form. */
  readonly dismissed: boolean;
  /** Why the client's answers do not fit the question. */
  readonly refusal?: string;
}

/**
 * Continues the delegation of an earlier round with the client's answers. `state` is checked like any id from a caller, so
 * a forged one achieves no more than answer_task.
 */
async function resume({ broker, principal, inputResponses }: McpContext, state: string): Promise<Resumed> {
  const id = check(delegationIdSchema, state, "requestState");
  const record = await read(broker, principal, id);
  const delegation = toDelegation(record);
  const { interrupt } = delegation;
  if (interrupt === null) return { record, dismissed: false };
  const dismissed = isDismissed(delegation, inputResponses);
  try {
    const answers = toAnswers(delegation, inputResponses);
    return {
      record: await answerPart(
        broker,
        principal,
        id,
        { interrupt_id: interrupt.id, answers },
        { via: "mcp" },
      ),
      dismissed,
    };
  } catch (error) {
    if (!(error instanceof ErrandError)) throw error;
    // An approval that does not count is forbidden; a denial would do.
    if (error.code === "invalid_request" || error.code === "forbidden")
      return { record, dismissed, refusal: error.message };
    // Another answer came first.
    if (error.code !== "interrupt_not_open") throw error;
    return { record: await read(broker, principal, id), dismissed: false };
  }
}

async function delegateAndWait(
  context: McpContext,
  {
    wait_seconds,
    cancel_on_disconnect,
    ...input
  }: DelegateInput & { wait_seconds: number; cancel_on_disconnect: boolean },
): Promise<ToolOutput | DirectResult> {
  const { broker, principal, request, canceled } = context;
  const { supportsTasks } = context;
  // Opened before the work is accepted, so that a caller beyond its quota is refused with nothing written.
  const scope = request.openScope(wait_seconds > 0 && !supportsTasks ? "polls" : null);
  try {
    const resumed =
      context.requestState === undefined ? undefined : await resume(context, context.requestState);
    const { record: accepted, replayed } = resumed
      ? { record: resumed.record, replayed: false }
      : await submit(context, input);
    if (supportsTasks) return { result: toTaskHandle(broker, toDelegation(accepted)) };
    if (resumed?.dismissed) return await show(context, accepted, replayed);
    const signal = AbortSignal.any([scope.signal, canceled]);
    const record = await waitWithProgress(context, accepted, wait_seconds, signal).catch((error: unknown) => {
      // The delegation is accepted, so the caller must get its id, whatever fails now.
      if (!(error instanceof ErrandError)) warn(broker, error, "wait for an accepted delegation failed");
      return accepted;
    });
    const hasLeft = canceled.aborted || request.isGone();
    if (hasLeft && cancel_on_disconnect && !record.finished) {
      await cancel(broker, principal, record.id, { reason: "the caller disconnected" });
    }
    const question =
      context.supportsForms && !hasLeft ? await askClient(context, record, resumed?.refusal) : undefined;
    return question ? { result: question } : await show(context, record, replayed);
  } finally {
    scope.release();
  }
}

export const delegateTools: readonly Tool[] = [
  defineTool({
    name: "delegate_task",
    title: "Delegate a task and wait",
    description:
      "Delegate a task to another agent and wait for its answer (45 seconds unless you set wait_seconds). If that takes longer, you get the delegation_id and the work continues: call check_task_status with that id. If the agent asks a question, call answer_task. If it fails, error.recovery says what to do. Do not call this tool again for the same work unless error.recovery says so.",
    visibleTo: CALLERS,
    meant,
    input: {
      ...delegateShape,
      wait_seconds: waitSchema.default(DEFAULT_WAIT_SECONDS),
      cancel_on_disconnect: z
        .boolean()
        .default(false)
        .describe("Cancel the delegation if this call is canceled or its connection closes while it waits."),
    },
    output,
    handle: delegateAndWait,
  }),
  defineTool({
    name: "delegate_task_async",
    title: "Delegate a task in the background",
    description:
      "Delegate a task to another agent and get its delegation_id at once. Use it for long work, or for several tasks at the same time. Collect the answers with wait_for_results: pass it the cursor that the first of these calls returned, or the ids. Or check one delegation with check_task_status.",
    visibleTo: CALLERS,
    meant,
    input: delegateShape,
    output: {
      ...output,
      /** For wait_for_results: the answer comes after it. */
      cursor: z.string(),
    },
    async handle(context, input) {
      // Before the delegation exists, so that its end comes after it, however soon.
      let cursor = "";
      const { record, replayed } = await submit(context, input, async () => {
        cursor = formatCursor(await now(context.broker));
      });
      const { text, data, ...rest } = await show(context, record, replayed);
      return { ...rest, text: `${text}\n\nCursor: ${cursor}`, data: { ...data, cursor } };
    },
  }),
];
