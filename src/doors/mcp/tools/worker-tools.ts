/**
 * Tools for agents that work by calling tools. Limit: a model reports when it comes to it, so a lease is long here
 * unless told otherwise; whoever stops calling loses it.
 */
import * as z from "zod";
import { inBackground } from "../../../engine/after-move.ts";
import { heartbeat, release } from "../../../engine/leases/heartbeat.ts";
import { handBack, lease } from "../../../engine/leases/lease.ts";
import { reply } from "../../../engine/leases/reply.ts";
import { ask } from "../../../engine/questions/ask.ts";
import { type Part, textOf } from "../../../schema/a2a.ts";
import { progressSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { givenAnswerSchema, interruptRequestSchema } from "../../../schema/interrupt.ts";
import {
  heartbeatRequestSchema,
  type Lease,
  leaseRequestSchema,
  releaseRequestSchema,
  replyRequestSchema,
} from "../../../schema/lease.ts";
import { agentNameSchema, leaseIdSchema, toInstant } from "../../../schema/values.ts";
import { check } from "../../http/route.ts";
import type { Context } from "../context.ts";
import { Room, saidOf, saidSchema } from "./content.ts";
import { SHOWN } from "./delegation-view.ts";
import { CONFIRM_SECONDS, deliver } from "./lease-delivery.ts";
import { toWork, workSchema, workText } from "./lease-view.ts";
import { type Tool, tool } from "./tool.ts";
import { waitSchema } from "./wait.ts";

const WORKERS = ["agent", "operator"] as const;
const LEASE_SECONDS = 900;
const POLL_SECONDS = 25;

const lease_id = leaseIdSchema.describe("The lease_id that poll_inbox handed out.");

/** An agent is itself; the operator has to say who it is. */
function agentOf({ principal }: Context, agent: string | undefined): string {
  const own = principal.kind === "agent" ? principal.name : undefined;
  const name = agent ?? own;
  if (name !== undefined) return name;
  throw new ErrandError("invalid_request", "agent: say for which agent you work.", {
    details: { issues: [{ path: "agent", reason: "needed with a token that is no agent's" }] },
  });
}

export const workingTools: readonly Tool[] = [
  tool({
    name: "poll_inbox",
    title: "Ask for work",
    description:
      "Ask for work as an agent; waits until there is some. What you get is leased to you: it is yours until expires_at, and longer with every report_progress. If it has confirm_by, call report_progress first, before that time. Do what task says, then call complete_task, fail_task, request_input or release_task with its lease_id. Take no more with max than you can do in that time.",
    for: WORKERS,
    input: {
      agent: agentNameSchema.optional().describe("Only for an operator's token; an agent's is its own."),
      wait_seconds: waitSchema.default(POLL_SECONDS),
      max: z.int().min(1).max(8).default(1),
      lease_seconds: z
        .number()
        .min(1)
        .max(3600)
        .default(LEASE_SECONDS)
        .describe("How long you keep it without a report; then somebody else gets it."),
      full: z
        .boolean()
        .default(false)
        .describe(`Work whole, however long; else ${SHOWN.full / 1024} KiB of it, by all tasks together.`),
    },
    output: { tasks: z.array(workSchema) },
    async handle(context, { agent, full, ...asked }) {
      const { broker, principal, call } = context;
      const name = agentOf(context, agent);
      const { lease_seconds } = asked;
      const confirm_within_seconds = Math.min(CONFIRM_SECONDS, lease_seconds);
      const wanted = { ...asked, confirm_within_seconds, worker_id: "mcp" };
      const request = check(leaseRequestSchema, wanted, "arguments");
      const deliveries = await context.held(asked.wait_seconds, async (signal) => {
        // Finds out while the poll waits, so that work is not delayed by it.
        void context.answersPings(signal);
        const granted = await lease(broker, principal, name, request, signal);
        return deliver(context, granted, signal);
      });
      if (deliveries.length > 0) {
        // They go only to a connection that takes them.
        const refs = deliveries.map(({ ref }) => ref);
        call.onLost(() => void inBackground(broker, handBack(broker, refs)));
      }
      const confirmBy = ({ expires_at }: Lease) =>
        toInstant(Date.parse(expires_at) - (lease_seconds - confirm_within_seconds) * 1000);
      const bytes = full ? Number.POSITIVE_INFINITY : SHOWN.full / Math.max(1, deliveries.length);
      const tasks = deliveries.map((one) => toWork(one, confirmBy, bytes));
      const text = tasks.map(workText).join("\n\n");
      return { text: text === "" ? "No work now. Call poll_inbox again." : text, data: { tasks } };
    },
  }),
  tool({
    name: "report_progress",
    title: "Report, and keep the lease",
    description:
      "Say how far you are; it also keeps the lease, so call it well before expires_at, with or without words. The answer carries follow-ups of the delegator: do as they say, and give the message_id of the last one as seen with the next report. An error lease_lost means: stop this work.",
    for: WORKERS,
    input: {
      lease_id,
      ...progressSchema.shape,
      seen: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe("message_id of the newest follow-up that you have read."),
      wait_seconds: waitSchema.default(0).describe("Wait for a follow-up or a cancel that long."),
    },
    output: { expires_at: z.string(), messages: z.array(saidSchema) },
    async handle(context, { lease_id: id, seen, wait_seconds, ...progress }) {
      const { broker, principal } = context;
      const says = Object.values(progress).some((one) => one !== undefined);
      const beat = { wait_seconds, ...(seen !== undefined && { seen }), ...(says && { progress }) };
      const request = check(heartbeatRequestSchema, beat, "arguments");
      const report = (signal: AbortSignal) => heartbeat(broker, principal, id, request, signal);
      // No poll: leases bound it.
      const { expires_at, messages } = await context.held(wait_seconds, report, null);
      const room = new Room(SHOWN.full);
      // What does not fit comes with the next report, once these are seen.
      const said = room.each(messages, (one) => saidOf(one, room));
      const told = said.map(({ message_id, text }) => `- [${message_id}] ${text}`);
      const news = told.length === 0 ? "" : `\nThe delegator says:\n${told.join("\n")}`;
      return { text: `The lease is yours until ${expires_at}.${news}`, data: { expires_at, messages: said } };
    },
  }),
  tool({
    name: "request_input",
    title: "Ask the delegator",
    description:
      "Ask whoever delegated for an answer or an approval. The lease ends with it: stop working on this, and call poll_inbox; the work comes back with the answer in its history. If it was answered before, the answer is here at once and the lease is kept.",
    for: WORKERS,
    repeatable: true,
    input: {
      lease_id,
      question: z.string().min(1),
      kind: z
        .enum(["input", "auth"])
        .default("input")
        .describe("auth: you need a credential. Never ask for one as text."),
      options: z.array(z.string()).min(1).max(100).optional().describe("Answers to choose from."),
      schema: z.record(z.string(), z.unknown()).optional().describe("A flat JSON Schema of the answer."),
      request_id: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe("Your name for the question; the same one asks no second time."),
      expires_in_seconds: z.number().min(1).max(31_536_000).optional(),
    },
    output: {
      interrupt_id: z.string(),
      answered: z.boolean(),
      answers: z.record(z.string(), givenAnswerSchema),
    },
    async handle({ broker, principal }, { lease_id: id, question: text, ...asked }) {
      const request = check(interruptRequestSchema, { text, ...asked }, "arguments");
      const { interrupt_id, answers } = await ask(broker, principal, id, request);
      const given = Object.values(answers ?? {}).map(
        ({ decision, message }) => `${decision ? `[${decision}] ` : ""}${textOf(message ?? {})}`,
      );
      const told =
        answers === undefined
          ? "Asked. This lease is over: call poll_inbox; the work comes back with the answer."
          : `It was answered before, and the lease is still yours: ${given.join("; ")}`;
      return {
        text: told,
        data: { interrupt_id, answered: answers !== undefined, ...(answers && { answers }) },
      };
    },
  }),
  tool({
    name: "complete_task",
    title: "Hand in the answer",
    description:
      "Finish the work with its answer: text for the delegator, data as JSON if a program reads it, files as artifacts. Then call poll_inbox for what is next. The same again does no harm.",
    for: WORKERS,
    repeatable: true,
    input: {
      lease_id,
      text: z.string().optional(),
      data: z.unknown().optional(),
      artifacts: z
        .array(z.strictObject({ name: z.string().min(1).max(255), text: z.string() }))
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
        artifacts: artifacts.map(({ name, text: content }) => ({
          artifactId: name,
          name,
          parts: [{ text: content }],
        })),
      };
      const { outcome, record } = await reply(
        broker,
        principal,
        id,
        check(replyRequestSchema, request, "arguments"),
      );
      return ended(outcome, record);
    },
  }),
  tool({
    name: "fail_task",
    title: "Give the work up",
    description:
      "End the work without an answer, and say why: failed, or rejected if you will not do it. retryable: true puts it back for another attempt, for trouble that passes.",
    for: WORKERS,
    ends: true,
    repeatable: true,
    input: {
      lease_id,
      message: z.string().min(1).max(65_536),
      code: z
        .string()
        .regex(/^[a-z][a-z0-9_]{0,63}$/)
        .optional()
        .describe("A name for the failure, in snake_case."),
      retryable: z.boolean().default(false),
      rejected: z.boolean().default(false),
    },
    output: { outcome: z.string(), delegation_id: z.string(), state: z.string() },
    async handle({ broker, principal }, { lease_id: id, message, code, retryable, rejected }) {
      const state = rejected ? "rejected" : "failed";
      const error = { code: code ?? (rejected ? "rejected" : "agent_error"), message, retryable };
      const request = check(replyRequestSchema, { state, error }, "arguments");
      const { outcome, record } = await reply(broker, principal, id, request);
      return ended(outcome, record);
    },
  }),
  tool({
    name: "release_task",
    title: "Put the work back",
    description:
      "Put the work back for somebody else, or for later with delay_seconds; no attempt is spent. Use it when you cannot go on now but another worker could.",
    for: WORKERS,
    input: { lease_id, ...releaseRequestSchema.shape },
    output: { delegation_id: z.string() },
    async handle({ broker, principal }, { lease_id: id, ...request }) {
      const delegation_id = await release(broker, principal, id, request);
      return { text: `Delegation ${delegation_id} is back in the queue.`, data: { delegation_id } };
    },
  }),
];

function ended(outcome: string, { id, state }: { readonly id: string; readonly state: string }) {
  const told = outcome === "duplicate" ? "It was that already" : "Done";
  return {
    text: `${told}: delegation ${id} is ${state}. Call poll_inbox for what is next.`,
    data: { outcome, delegation_id: id, state },
  };
}
