/**
 * Tools for agents that work by calling tools. A model reports progress irregularly, so the default lease is long; an
 * agent that stops calling loses it.
 */
import * as z from "zod";
import { inBackground } from "../../../engine/after-move.ts";
import { heartbeat } from "../../../engine/leases/heartbeat.ts";
import { lease, returnLeases } from "../../../engine/leases/lease.ts";
import { release } from "../../../engine/leases/release.ts";
import { reply } from "../../../engine/leases/reply.ts";
import { ask } from "../../../engine/questions/ask.ts";
import { type Part, textOf } from "../../../schema/a2a.ts";
import { actionSchema, progressSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { givenAnswerSchema, interruptRequestSchema } from "../../../schema/interrupt.ts";
import { jsonObjectSchema } from "../../../schema/json-object.ts";
import {
  heartbeatRequestSchema,
  type Lease,
  leaseRequestSchema,
  releaseRequestSchema,
  replyRequestSchema,
} from "../../../schema/lease.ts";
import { agentNameSchema, errorCodeSchema, leaseIdSchema, toInstant } from "../../../schema/values.ts";
import { check } from "../../http/route.ts";
import type { McpContext } from "../context.ts";
import { ByteBudget, messageViewSchema, toMessageView } from "./content.ts";
import { VIEW_BYTES } from "./delegation-view.ts";
import { CONFIRM_SECONDS, deliverLeases } from "./lease-delivery.ts";
import { leasedTaskSchema, leasedTaskText, toLeasedTask } from "./leased-task.ts";
import { defineTool, type Tool } from "./tool.ts";
import { WORKERS } from "./visibility.ts";
import { waitSchema } from "./wait.ts";

const LEASE_SECONDS = 900;
const POLL_SECONDS = 25;

export const leaseIdInput = leaseIdSchema.describe("The lease_id, as returned by poll_inbox.");

/** The agent to work as: the one that the operator names, or the one that the token belongs to. */
function agentOf({ principal }: McpContext, agent: string | undefined): string {
  const own = principal.kind === "agent" ? principal.name : undefined;
  const name = agent ?? own;
  if (name !== undefined) return name;
  throw new ErrandError("invalid_request", "The argument agent is missing. Name the agent to work as.", {
    details: { issues: [{ path: "agent", reason: "required, because this is not an agent's token" }] },
  });
}

/** The client's name as a worker_id: printable ASCII without spaces, at most 128 characters. */
function workerIdOf({ clientName = "" }: McpContext): string {
  const id = clientName.slice(0, 128).replace(/[^\x21-\x7e]+/g, "-");
  return /[^-]/.test(id) ? id : "mcp";
}

export const workerTools: readonly Tool[] = [
  defineTool({
    name: "poll_inbox",
    title: "Get work",
    description:
      "Get work as an agent. The call waits until there is some. The work is leased to you until expires_at; every report_progress extends the lease. If there is a confirm_by, call report_progress first, before that time. Do what task says, then call complete_task, fail_task, request_input, wait_for_parts or release_task with its lease_id. With max, get no more delegations than you can finish before their leases expire.",
    visibleTo: WORKERS,
    input: {
      agent: agentNameSchema.optional().describe("The agent to work as. Only for an operator's token."),
      wait_seconds: waitSchema.default(POLL_SECONDS),
      max: z.int().min(1).max(8).default(1),
      lease_seconds: z
        .number()
        .min(1)
        .max(3600)
        .default(LEASE_SECONDS)
        .describe("Seconds until the lease expires without a report. Then the work goes to another worker."),
      full: z
        .boolean()
        .default(false)
        .describe(`Return each task whole. Otherwise all tasks share ${VIEW_BYTES.full / 1024} KiB.`),
    },
    output: { tasks: z.array(leasedTaskSchema) },
    async handle(context, { agent, full, ...poll }) {
      const { broker, principal, request } = context;
      const name = agentOf(context, agent);
      const { lease_seconds } = poll;
      const confirm_within_seconds = Math.min(CONFIRM_SECONDS, lease_seconds);
      const terms = { ...poll, confirm_within_seconds, worker_id: workerIdOf(context) };
      const leaseRequest = check(leaseRequestSchema, terms, "arguments");
      const deliveries = await context.runWaiting(poll.wait_seconds, async (signal) => {
        // The client is pinged while the poll waits, so that the ping does not delay the work.
        void context.answersPings(signal);
        const granted = await lease(broker, principal, name, leaseRequest, signal);
        return deliverLeases(context, granted, signal);
      });
      if (deliveries.length > 0) {
        // If the response is not delivered, the leases are released.
        const refs = deliveries.map(({ ref }) => ref);
        request.onUndelivered(() => void inBackground(broker, returnLeases(broker, refs)));
      }
      const confirmBy = ({ expires_at }: Lease) =>
        toInstant(Date.parse(expires_at) - (lease_seconds - confirm_within_seconds) * 1000);
      const bytes = full ? Number.POSITIVE_INFINITY : VIEW_BYTES.full / Math.max(1, deliveries.length);
      const tasks = deliveries.map((delivery) => toLeasedTask(delivery, confirmBy, bytes));
      const text = tasks.map(leasedTaskText).join("\n\n");
      return { text: text === "" ? "No work yet. Call poll_inbox again." : text, data: { tasks } };
    },
  }),
  defineTool({
    name: "report_progress",
    title: "Report progress",
    description:
      "Report progress and extend the lease. Call it well before expires_at, with or without a message. The answer contains follow-ups from the delegator: act on them, and pass the message_id of the last one as seen in your next report. On error lease_lost, stop this work.",
    visibleTo: WORKERS,
    input: {
      lease_id: leaseIdInput,
      ...progressSchema.shape,
      seen: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe("The message_id of the newest follow-up that you have read."),
      wait_seconds: waitSchema.default(0).describe("Wait this long for a follow-up or a cancel."),
    },
    output: { expires_at: z.string(), messages: z.array(messageViewSchema) },
    async handle(context, { lease_id: id, seen, wait_seconds, ...progress }) {
      const { broker, principal } = context;
      const hasProgress = Object.values(progress).some((value) => value !== undefined);
      const beat = { wait_seconds, ...(seen !== undefined && { seen }), ...(hasProgress && { progress }) };
      const request = check(heartbeatRequestSchema, beat, "arguments");
      const report = (signal: AbortSignal) => heartbeat(broker, principal, id, request, signal);
      const { expires_at, messages } = await context.runWaiting(wait_seconds, report);
      const budget = new ByteBudget(VIEW_BYTES.full);
      // The next report returns the rest, once these are seen.
      const shown = budget.map(messages, (message) => toMessageView(message, budget));
      const lines = shown.map(({ message_id, text }) => `- [${message_id}] ${text}`);
      const followUps = lines.length === 0 ? "" : `\nMessages from the delegator:\n${lines.join("\n")}`;
      return {
        text: `The lease now expires at ${expires_at}.${followUps}`,
        data: { expires_at, messages: shown },
      };
    },
  }),
  defineTool({
    name: "request_input",
    title: "Ask the delegator",
    description:
      "Ask the delegator for an answer or an approval. This ends the lease: stop this work and call poll_inbox; the work returns with the answer in its history. If the question was answered before, the call returns the answer at once and you keep the lease.",
    visibleTo: WORKERS,
    idempotent: true,
    input: {
      lease_id: leaseIdInput,
      question: z.string().min(1),
      kind: z
        .enum(["input", "auth"])
        .default("input")
        .describe("auth: you need a credential. Never ask for a credential as text."),
      options: z
        .array(z.string())
        .min(1)
        .max(100)
        .optional()
        .describe("The only possible answers; approve and deny come as a decision."),
      schema: jsonObjectSchema
        .optional()
        .describe("A flat JSON Schema for the answer, or for the edited arguments of the action."),
      action: actionSchema
        .optional()
        .describe(
          "What you will do if the answer is approve. Do it with the arguments of the answer's data, if any.",
        ),
      edit: z.boolean().optional().describe("The answer may replace the arguments of the action."),
      request_id: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe("Your name for the question. A repeated call with the same name does not ask twice."),
      expires_in_seconds: z.number().min(1).max(31_536_000).optional(),
    },
    output: {
      interrupt_id: z.string(),
      answered: z.boolean(),
      answers: z.record(z.string(), givenAnswerSchema),
    },
    async handle({ broker, principal }, { lease_id: id, question, ...options }) {
      const request = check(interruptRequestSchema, { text: question, ...options }, "arguments");
      const { interrupt_id, answers } = await ask(broker, principal, id, request);
      const answerTexts = Object.values(answers ?? {}).map(
        ({ decision, message }) => `${decision ? `[${decision}] ` : ""}${textOf(message ?? {})}`,
      );
      const text =
        answers === undefined
          ? "The question is open and your lease ended. Call poll_inbox; the work returns with the answer."
          : `The question was answered before, and you keep the lease. Answer: ${answerTexts.join("; ")}`;
      return {
        text,
        data: { interrupt_id, answered: answers !== undefined, ...(answers && { answers }) },
      };
    },
  }),
  defineTool({
    name: "complete_task",
    title: "Complete the work",
    description:
      "Complete the delegation that you work on with its answer: text for the delegator, data as JSON for programs, files as artifacts. Then call poll_inbox for more work. A repeated call with the same arguments is safe.",
    visibleTo: WORKERS,
    idempotent: true,
    input: {
      lease_id: leaseIdInput,
      text: z.string().optional(),
      data: z.unknown().optional(),
      artifacts: z
        .array(
          z
            .strictObject({
              name: z.string().min(1).max(255),
              text: z.string().optional(),
              base64: z
                .string()
                .regex(/^[A-Za-z0-9+/_-]+={0,2}$/, "must be base64, without a data: prefix")
                .optional()
                .describe("The bytes of a file, in place of text."),
              media_type: z.string().max(255).optional().describe("For example image/png."),
            })
            .refine(({ text, base64 }) => (text === undefined) !== (base64 === undefined), {
              error: "give exactly one of text and base64",
              path: ["text"],
            }),
        )
        .max(100)
        .optional(),
    },
    output: { outcome: z.string(), delegation_id: z.string(), state: z.string() },
    async handle({ broker, principal }, { lease_id: id, text, data, artifacts = [] }) {
      const parts: Part[] = [
        ...(text === undefined ? [] : [{ text }]),
        ...(data === undefined ? [] : [{ data }]),
      ];
      const request = {
        state: "completed",
        message: { parts },
        artifacts: artifacts.map(({ name, text: content, base64, media_type: mediaType }) => ({
          artifactId: name,
          name,
          parts: [
            {
              ...(base64 === undefined ? { text: content } : { raw: base64, filename: name }),
              ...(mediaType !== undefined && { mediaType }),
            },
          ],
        })),
      };
      const { outcome, record } = await reply(
        broker,
        principal,
        id,
        check(replyRequestSchema, request, "arguments"),
      );
      return endedOutput(outcome, record.id, record.get("state"));
    },
  }),
  defineTool({
    name: "fail_task",
    title: "Fail the work",
    description:
      "End the delegation that you work on without an answer, and say why: it failed, or with rejected: true you refuse to do it. For a temporary problem, retryable: true queues another attempt.",
    visibleTo: WORKERS,
    destructive: true,
    idempotent: true,
    input: {
      lease_id: leaseIdInput,
      message: z.string().min(1).max(65_536),
      code: errorCodeSchema.optional().describe("A code for the failure, in snake_case."),
      retryable: z.boolean().default(false),
      rejected: z.boolean().default(false),
    },
    output: { outcome: z.string(), delegation_id: z.string(), state: z.string() },
    async handle({ broker, principal }, { lease_id: id, message, code, retryable, rejected }) {
      const state = rejected ? "rejected" : "failed";
      const error = { code: code ?? (rejected ? "rejected" : "agent_error"), message, retryable };
      const request = check(replyRequestSchema, { state, error }, "arguments");
      const { outcome, record } = await reply(broker, principal, id, request);
      return endedOutput(outcome, record.id, record.get("state"));
    },
  }),
  defineTool({
    name: "release_task",
    title: "Release the work",
    description:
      "Return the delegation that you work on to the queue for another worker, or for later with delay_seconds. No attempt is spent. Use it when you cannot continue now but another worker could.",
    visibleTo: WORKERS,
    input: { lease_id: leaseIdInput, ...releaseRequestSchema.shape },
    output: { delegation_id: z.string() },
    async handle({ broker, principal }, { lease_id: id, ...request }) {
      const delegation_id = await release(broker, principal, id, request);
      return { text: `Delegation ${delegation_id} is back in the queue.`, data: { delegation_id } };
    },
  }),
];

function endedOutput(outcome: string, id: string, state: string) {
  const already = outcome === "duplicate" ? "already " : "";
  return {
    text: `Delegation ${id} is ${already}${state}. Call poll_inbox for more work.`,
    data: { outcome, delegation_id: id, state },
  };
}
