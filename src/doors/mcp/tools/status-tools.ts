/**
 * Tools for what was delegated: how it is, what it asks, what came of it. Limit: lists are short and cut; cursors lead
 * on.
 */
import * as z from "zod";
import type { Broker } from "../../../engine/broker.ts";
import { cancel } from "../../../engine/delegations/cancel.ts";
import { list } from "../../../engine/delegations/list.ts";
import { readWhenReady } from "../../../engine/delegations/read.ts";
import { results } from "../../../engine/delegations/results.ts";
import { answer } from "../../../engine/questions/answer.ts";
import { message } from "../../../engine/questions/message.ts";
import { formatCursor, parseCursor } from "../../../events/cursor.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import { delegationFilterSchema, stateSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { answerRequestSchema, answerSchema, decisionSchema } from "../../../schema/interrupt.ts";
import { delegationIdSchema, toInstant } from "../../../schema/values.ts";
import { check } from "../../http/route.ts";
import { newestSaid, Room, saidLine, saidOf, saidSchema } from "./content.ts";
import {
  delegationOf,
  SHOWN,
  type Summary,
  summarize,
  summarySchema,
  summaryShape,
  toText,
} from "./delegation-view.ts";
import { type Tool, type ToolAnswer, tool } from "./tool.ts";
import { DEFAULT_WAIT_SECONDS, waitFor, waitSchema } from "./wait.ts";

const DELEGATORS = ["agent", "caller", "operator"] as const;
const CONTROLLERS = ["agent", "caller", "approver", "operator"] as const;
const READERS = ["agent", "caller", "approver", "viewer", "operator"] as const;

const delegation_id = delegationIdSchema.describe("The delegation_id that delegating answered with.");
const interrupt_id = z
  .string()
  .min(1)
  .max(255)
  .describe("The interrupt_id of the question, as check_task_status shows it.");
const limit = z.int().min(1).max(50).default(10);

function show(record: StoredDelegation): ToolAnswer {
  const data = summarize(delegationOf(record));
  return { text: toText(data), data };
}

/** The engine calls it by the name that it has elsewhere. */
function cursorFrom(broker: Broker, cursor = "0") {
  try {
    return parseCursor(cursor, broker.shards.count);
  } catch (error) {
    if (!(error instanceof ErrandError) || error.code !== "invalid_request") throw error;
    throw new ErrandError("invalid_request", "This is no cursor of wait_for_results.", {
      details: { issues: [{ path: "cursor", reason: "give one back as it was given, or none" }] },
    });
  }
}

const brief = (record: StoredDelegation): Summary => summarize(delegationOf(record), SHOWN.list);
const lines = (found: readonly Summary[], none: string): string =>
  found.length === 0 ? none : found.map((one) => toText(one)).join("\n\n");

export const followingTools: readonly Tool[] = [
  tool({
    name: "check_task_status",
    title: "See how a delegation is",
    description:
      "How a delegation stands, its question if it asks one, its answer once it is finished. With wait_seconds the call waits until it is finished or asks something, so one call with 45 is better than many without. full: true shows the whole answer and what was said so far, when the usual one says that it is cut.",
    for: READERS,
    reads: true,
    input: {
      delegation_id,
      wait_seconds: waitSchema.default(0),
      after_version: z
        .int()
        .min(0)
        .optional()
        .describe("Wait for any change behind this version instead, progress included."),
      full: z.boolean().default(false),
    },
    output: { ...summaryShape, task: z.string(), history: z.array(saidSchema) },
    async handle(context, { delegation_id: id, wait_seconds, after_version, full }) {
      const { broker, principal } = context;
      const record = await context.held(wait_seconds, async (signal) => {
        if (after_version !== undefined) {
          return readWhenReady(broker, principal, id, { wait_seconds, after_version, signal });
        }
        const now = await readWhenReady(broker, principal, id, { wait_seconds: 0, signal });
        return waitFor(context, now, wait_seconds, signal);
      });
      if (!full) return show(record);
      const delegation = delegationOf(record);
      const data = summarize(delegation, SHOWN.full);
      const room = new Room(SHOWN.full);
      const task = saidOf(delegation.message, room);
      const history = newestSaid(delegation.history, room);
      const said = [task, ...history].map(saidLine).join("\n");
      return {
        text: `${toText(data)}\nWhat was said:\n${said}`,
        data: { ...data, task: task.text, history },
      };
    },
  }),
  tool({
    name: "wait_for_results",
    title: "Gather results",
    description:
      "Your inbox: what you delegated that finished or asks something since the cursor. Waits for the first of it if there is none. Call it again with the cursor it answered with; without one it begins with the oldest that is kept.",
    for: DELEGATORS,
    reads: true,
    input: {
      cursor: z.string().min(1).max(4096).optional(),
      wait_seconds: waitSchema.default(DEFAULT_WAIT_SECONDS),
      limit,
    },
    output: { results: z.array(summarySchema), cursor: z.string() },
    async handle(context, { cursor, wait_seconds, limit: most }) {
      const { broker, principal } = context;
      const from = cursorFrom(broker, cursor);
      const { records, positions } = await context.held(wait_seconds, (signal) =>
        results(broker, principal, from, { wait_seconds, limit: most, signal }),
      );
      const found = records.map(brief);
      const next = formatCursor(positions);
      const text = lines(found, "Nothing new finished or asked something.");
      return { text: `${text}\n\nCall again with cursor ${next}`, data: { results: found, cursor: next } };
    },
  }),
  tool({
    name: "list_tasks",
    title: "List delegations",
    description:
      "Delegations that you may see, newest first, in short: yours, and those to you if you are an agent. Give next_cursor back as cursor for more; a page may be short while there is one. For what is new, wait_for_results is better.",
    for: READERS,
    reads: true,
    input: {
      agent: delegationFilterSchema.shape.target.describe("Only those to this agent."),
      delegator: delegationFilterSchema.shape.delegator.describe("Only those of this principal."),
      context_id: delegationFilterSchema.shape.context_id,
      parent_id: delegationFilterSchema.shape.parent_id,
      state: stateSchema.or(z.array(stateSchema).min(1)).optional().describe("One, or several."),
      error_code: delegationFilterSchema.shape.error_code,
      since: delegationFilterSchema.shape.since.describe("Only tasks created at or after this instant."),
      until: delegationFilterSchema.shape.until.describe("Only tasks created before this instant."),
      q: delegationFilterSchema.shape.q.describe(
        "Only tasks with this text in their first 100 bytes; case is ignored.",
      ),
      cursor: z.string().min(1).max(256).optional(),
      limit,
    },
    output: {
      tasks: z.array(summarySchema),
      next_cursor: z.string().nullable(),
      scanned_to: z.string().nullable(),
    },
    async handle({ broker, principal }, { agent: target, state, ...query }) {
      const states = typeof state === "string" ? [state] : state;
      const page = await list(broker, principal, { target, state: states, ...query });
      const { records, next_cursor } = page;
      const scanned_to = page.scanned_to && toInstant(page.scanned_to);
      const tasks = records.map(brief);
      const more = next_cursor === null ? "" : `\n\nMore with cursor ${next_cursor}`;
      return { text: `${lines(tasks, "None.")}${more}`, data: { tasks, next_cursor, scanned_to } };
    },
  }),
  tool({
    name: "answer_task",
    title: "Answer a question",
    description:
      "Answer what a delegation asks (state input_required or auth_required). Its agent goes on with the answer; call check_task_status with wait_seconds for what comes of it. When several requests were asked give answers by request_id, all of them at once. Do not invent answers that only the user can give: ask the user.",
    for: CONTROLLERS,
    repeatable: true,
    input: {
      delegation_id,
      interrupt_id,
      text: z.string().min(1).optional(),
      decision: decisionSchema.optional(),
      data: z.unknown().optional().describe("An answer as JSON, where the question has a schema."),
      answers: z
        .record(z.string(), answerSchema)
        .optional()
        .describe("By request_id: {text?, decision?, data?} each."),
    },
    output: summaryShape,
    async handle({ broker, principal }, { delegation_id: id, ...given }) {
      return show(await answer(broker, principal, id, check(answerRequestSchema, given, "arguments")));
    },
  }),
  tool({
    name: "approve_or_deny",
    title: "Approve or deny",
    description:
      "Say yes or no to what a delegation asks, with a reason if you have one. Approve only what the user wants; if you do not know, ask the user first.",
    for: CONTROLLERS,
    repeatable: true,
    input: { delegation_id, interrupt_id, decision: decisionSchema, text: z.string().min(1).optional() },
    output: summaryShape,
    async handle({ broker, principal }, { delegation_id: id, ...given }) {
      return show(await answer(broker, principal, id, given));
    },
  }),
  tool({
    name: "send_follow_up",
    title: "Say something more",
    description:
      "Send a message to work that is waiting or under way: a correction, an addition. Its agent gets it with its next report. For work that asks something use answer_task; for work that is finished delegate anew.",
    for: CONTROLLERS,
    input: { delegation_id, text: z.string().min(1) },
    output: summaryShape,
    async handle({ broker, principal }, { delegation_id: id, text }) {
      return show(await message(broker, principal, id, { text }));
    },
  }),
  tool({
    name: "cancel_task",
    title: "Cancel a delegation",
    description:
      "Cancel a delegation, and with it what was delegated under it (unless cascade is false). Its agent learns it at once. What is finished stays as it is.",
    for: CONTROLLERS,
    ends: true,
    repeatable: true,
    input: { delegation_id, reason: z.string().max(1024).optional(), cascade: z.boolean().default(true) },
    output: summaryShape,
    async handle({ broker, principal }, { delegation_id: id, ...options }) {
      return show(await cancel(broker, principal, id, options));
    },
  }),
];
