/**
 * Tools that delegate. Limit: a wait ends below a minute; what is delegated goes on.
 */
import { type InputRequiredResult, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod";
import { warn } from "../../../engine/after-move.ts";
import type { Broker } from "../../../engine/broker.ts";
import { cancel } from "../../../engine/delegations/cancel.ts";
import { type Delegated, delegate } from "../../../engine/delegations/delegate.ts";
import { read } from "../../../engine/delegations/read.ts";
import { answeredParts, answerPart } from "../../../engine/questions/answer-parts.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import { delegateRequestSchema, isTerminal } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { agentNameSchema, contextIdSchema, delegationIdSchema } from "../../../schema/values.ts";
import { toErrandError } from "../../http/problem.ts";
import { check } from "../../http/route.ts";
import type { Context } from "../context.ts";
import { isDismissed, toAnswers, toInputRequests } from "../elicitation.ts";
import { finalAnswer, toHandle } from "../tasks.ts";
import { delegationOf, summarize, summaryShape, toText } from "./delegation-view.ts";
import { type Tool, type ToolAnswer, tool, type Unfinished } from "./tool.ts";
import { DEFAULT_WAIT_SECONDS, waitFor, waitSchema } from "./wait.ts";

const workShape = {
  agent: agentNameSchema.describe("The agent's name, as discover_agents shows it."),
  task: z
    .string()
    .min(1)
    .describe("The work, complete in itself: the agent sees nothing of this conversation."),
  context_id: contextIdSchema
    .optional()
    .describe("A label that ties several delegations to one conversation."),
  parent_id: delegationIdSchema
    .optional()
    .describe("The delegation that this is a part of, if you work on one: canceling that cancels this."),
  priority: z.int().min(0).max(9).optional().describe("0 to 9, higher first; 5 unless given."),
  delay_seconds: z.number().min(0).max(31_536_000).optional().describe("Not handed out before."),
  ttl_seconds: z
    .number()
    .positive()
    .max(31_536_000)
    .optional()
    .describe("Fails if not done by then; 7 days unless given."),
  start_within_seconds: z
    .number()
    .positive()
    .max(31_536_000)
    .optional()
    .describe("Fails if nobody took it by then."),
  metadata: z.record(z.string(), z.unknown()).optional().describe("Yours, handed to the agent as it is."),
  idempotency_key: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "Any text; the same key again finds the delegation of the first call instead of making another.",
    ),
};
type Work = z.output<z.ZodObject<typeof workShape>>;

const output = {
  ...summaryShape,
  /** An earlier call with the same key made it. */
  replayed: z.boolean(),
  /** Whether anybody polls for the agent. */
  presence: z.string(),
};

async function submit(context: Context, work: Work): Promise<Delegated> {
  const { broker, principal, call } = context;
  const { agent, idempotency_key, ...rest } = work;
  const request = check(delegateRequestSchema, { target: agent, ...rest }, "arguments");
  const idempotencyKey = idempotency_key ?? context.keyFor(work);
  const { traceparent } = context;
  try {
    return await delegate(broker, principal, request, { idempotencyKey, body: request, traceparent });
  } catch (error) {
    const refused = toErrandError(error, broker.log, call.requestId);
    if (refused.context.details?.outcome !== "unknown") throw refused;
    // Only with the key can the caller find out.
    const details = { ...refused.context.details, idempotency_key: idempotencyKey };
    throw new ErrandError(refused.code, refused.message, { ...refused.context, details });
  }
}

async function show(context: Context, record: StoredDelegation, replayed: boolean): Promise<ToolAnswer> {
  const delegation = delegationOf(record);
  if (isTerminal(delegation.state)) {
    const answer = finalAnswer(delegation);
    return { ...answer, data: { ...answer.data, replayed } };
  }
  const data = summarize(delegation);
  const { state } = await context.broker.presence.glance(delegation.target);
  const absent =
    delegation.state === "submitted" && state === "offline"
      ? `\nNobody polls for ${delegation.target} now: it waits in the queue until somebody does.`
      : "";
  return { text: `${toText(data)}${absent}`, data: { ...data, replayed, presence: state } };
}

/** What it asks, for the client to ask its user and to call again; what it is about stands in the state. */
async function ask(broker: Broker, record: StoredDelegation): Promise<InputRequiredResult | undefined> {
  const delegation = delegationOf(record);
  const { interrupt } = delegation;
  if (interrupt === null) return undefined;
  const given = await answeredParts(broker, record.id, interrupt.id);
  const inputRequests = toInputRequests(delegation, given);
  if (Object.keys(inputRequests).length === 0) return undefined;
  return inputRequired({ inputRequests, requestState: record.id });
}

/**
 * The delegation of an earlier round, with what its client was asked for. The state is checked like any id that a
 * caller gives: whoever forges it comes as far as with answer_task.
 */
async function resume({ broker, principal, responses }: Context, state: string): Promise<Resumed> {
  const id = check(delegationIdSchema, state, "requestState");
  const record = await read(broker, principal, id);
  const delegation = delegationOf(record);
  const { interrupt } = delegation;
  if (interrupt === null) return { record, dismissed: false };
  const answers = toAnswers(delegation, responses);
  const dismissed = isDismissed(delegation, responses);
  try {
    return {
      record: await answerPart(broker, principal, id, { interrupt_id: interrupt.id, answers }),
      dismissed,
    };
  } catch (error) {
    // Somebody else was quicker.
    if (!(error instanceof ErrandError) || error.code !== "interrupt_not_open") throw error;
    return { record: await read(broker, principal, id), dismissed: false };
  }
}
interface Resumed {
  readonly record: StoredDelegation;
  /** The user put the form away. */
  readonly dismissed: boolean;
}

async function delegateAndWait(
  context: Context,
  {
    wait_seconds,
    cancel_on_disconnect,
    ...work
  }: Work & { wait_seconds: number; cancel_on_disconnect: boolean },
): Promise<ToolAnswer | Unfinished> {
  const { broker, principal, call, canceled } = context;
  const takesTask = context.takesTasks;
  // Held before anything is accepted: whoever waits too often already is refused with nothing written.
  const hold = call.openScope(wait_seconds > 0 && !takesTask ? "polls" : null);
  try {
    const earlier = context.state === undefined ? undefined : await resume(context, context.state);
    const { record: accepted, replayed } = earlier
      ? { record: earlier.record, replayed: false }
      : await submit(context, work);
    if (takesTask) return { result: toHandle(broker, delegationOf(accepted)) };
    if (earlier?.dismissed) return await show(context, accepted, replayed);
    const signal = AbortSignal.any([hold.signal, canceled]);
    const record = await waitFor(context, accepted, wait_seconds, signal).catch((error: unknown) => {
      // Nothing may cost its sender the id any more.
      if (!(error instanceof ErrandError)) warn(broker, error, "accepted, but not waited for");
      return accepted;
    });
    const hasLeft = canceled.aborted || call.isGone();
    if (hasLeft && cancel_on_disconnect && !record.finished) {
      await cancel(broker, principal, record.id, { reason: "the caller disconnected", cascade: true });
    }
    const asked = context.takesForms && !hasLeft ? await ask(broker, record) : undefined;
    return asked ? { result: asked } : await show(context, record, replayed);
  } finally {
    hold.release();
  }
}

export const delegatingTools: readonly Tool[] = [
  tool({
    name: "delegate_task",
    title: "Delegate and wait",
    description:
      "Hand a task to another agent and wait for its answer (45 s unless wait_seconds says otherwise). If it takes longer you get its delegation_id and it goes on: call check_task_status with that id. If it asks something, call answer_task. A failure says in error.recovery what to do; do not call this again for the same work unless it says so.",
    for: ["agent", "caller", "operator"],
    input: {
      ...workShape,
      wait_seconds: waitSchema.default(DEFAULT_WAIT_SECONDS),
      cancel_on_disconnect: z
        .boolean()
        .default(false)
        .describe("Cancel the delegation if this call is canceled or its connection is lost while it waits."),
    },
    output,
    handle: delegateAndWait,
  }),
  tool({
    name: "delegate_task_async",
    title: "Delegate and go on",
    description:
      "Hand a task to another agent and get its delegation_id at once. Use it for long work, or for several tasks at the same time; gather the answers with wait_for_results, or look at one with check_task_status.",
    for: ["agent", "caller", "operator"],
    input: workShape,
    output,
    async handle(context, work) {
      const { record, replayed } = await submit(context, work);
      return show(context, record, replayed);
    },
  }),
];
