/** Tools that show delegations and their results. Limit: lists are short, and continue with a cursor. */
import * as z from "zod";
import type { Broker } from "../../../engine/broker.ts";
import { list } from "../../../engine/delegations/list.ts";
import { toDelegation } from "../../../engine/delegations/parse.ts";
import { isSettled, read, readWhenReady } from "../../../engine/delegations/read.ts";
import { results } from "../../../engine/delegations/results.ts";
import { now } from "../../../engine/events/subscribe.ts";
import { formatCursor, type Positions, parseCursor } from "../../../events/cursor.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import { delegationFilterSchema, stateSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { contextIdSchema, delegationIdSchema, toInstant } from "../../../schema/values.ts";
import type { McpContext } from "../context.ts";
import {
  ByteBudget,
  type FileBlock,
  messageText,
  messageViewSchema,
  newestMessages,
  toMessageView,
} from "./content.ts";
import {
  type DelegationView,
  delegationIdInput,
  delegationViewSchema,
  delegationViewShape,
  showDelegation,
  toDelegationView,
  VIEW_BYTES,
  viewToText,
} from "./delegation-view.ts";
import { defineTool, type Tool } from "./tool.ts";
import { CALLERS, READERS } from "./visibility.ts";
import { DEFAULT_WAIT_SECONDS, waitSchema, waitWithProgress } from "./wait.ts";

const limit = z.int().min(1).max(50).default(10);

/** The engine's error would name the REST parameter. */
async function positionsOf(broker: Broker, cursor: string | undefined): Promise<Positions> {
  if (cursor === undefined) return now(broker);
  try {
    return parseCursor(cursor, broker.shards.count, broker.shards.earlier);
  } catch (error) {
    if (!(error instanceof ErrandError) || error.code !== "invalid_request") throw error;
    throw new ErrandError(
      "invalid_request",
      "The cursor is not one that wait_for_results or delegate_task_async returned.",
      {
        details: { issues: [{ path: "cursor", reason: "pass a returned cursor unchanged, or omit it" }] },
      },
    );
  }
}

/** In one call. */
const MAX_IDS = 50;

const toListView = (record: StoredDelegation): DelegationView =>
  toDelegationView(toDelegation(record), VIEW_BYTES.list);
/** Of the named delegations, those that wait for nothing of their agent. Throws if one does not exist. */
async function settledOf(
  { broker, principal }: McpContext,
  ids: ReadonlySet<string>,
): Promise<DelegationView[]> {
  const views: DelegationView[] = [];
  // One after the other: each may have megabytes.
  for (const id of ids) {
    const record = await broker.readLimiter.run(principal, () => read(broker, principal, id));
    if (isSettled(record)) views.push(toListView(record));
  }
  return views;
}

const listText = (views: readonly DelegationView[], none: string): string =>
  views.length === 0 ? none : views.map(viewToText).join("\n\n");

export const statusTools: readonly Tool[] = [
  defineTool({
    name: "check_task_status",
    title: "Check a delegation",
    description:
      "Show a delegation's state, its open question, or its answer once it is finished. With wait_seconds, the call waits until it is finished or asks a question; one call with wait_seconds 45 is better than many without. If the answer is cut, full: true shows all of it, with the messages so far.",
    visibleTo: READERS,
    readOnly: true,
    input: {
      delegation_id: delegationIdInput,
      wait_seconds: waitSchema.default(0),
      after_version: z
        .int()
        .min(0)
        .optional()
        .describe("Wait instead for any change after this version, including progress."),
      full: z.boolean().default(false),
    },
    output: { ...delegationViewShape, task: z.string(), history: z.array(messageViewSchema) },
    async handle(context, { delegation_id: id, wait_seconds, after_version, full }) {
      const { broker, principal } = context;
      const record = await context.runWaiting(wait_seconds, async (signal) => {
        if (after_version !== undefined) {
          return readWhenReady(broker, principal, id, { wait_seconds, after_version, signal });
        }
        const current = await readWhenReady(broker, principal, id, { wait_seconds: 0, signal });
        return waitWithProgress(context, current, wait_seconds, signal);
      });
      if (!full) return showDelegation(record);
      const delegation = toDelegation(record);
      const blocks: FileBlock[] = [];
      const data = toDelegationView(delegation, VIEW_BYTES.full, blocks);
      const budget = new ByteBudget(VIEW_BYTES.full);
      const task = toMessageView(delegation.message, budget);
      const history = newestMessages(delegation.history, budget);
      const messages = [task, ...history].map(messageText).join("\n");
      return {
        text: `${viewToText(data)}\nMessages:\n${messages}`,
        data: { ...data, task: task.text, history },
        blocks,
      };
    },
  }),
  defineTool({
    name: "wait_for_results",
    title: "Wait for results",
    description:
      "Return your delegations that finished or asked a question since the cursor. If there are none, wait for the first one. Pass the returned cursor to the next call; a first call passes the cursor of delegate_task_async, or ids. Without a cursor, only what happens from now on is returned.",
    visibleTo: CALLERS,
    readOnly: true,
    input: {
      cursor: z
        .string()
        .min(1)
        .max(4096)
        .optional()
        .describe("Of delegate_task_async, or of the last call; 0: from the oldest result that is kept."),
      ids: z
        .array(delegationIdSchema)
        .min(1)
        .max(MAX_IDS)
        .optional()
        .describe(
          "Only these delegations. Without a cursor, those that have finished or ask a question are returned at once.",
        ),
      context_id: contextIdSchema.optional().describe("Only delegations of this conversation."),
      wait_seconds: waitSchema.default(DEFAULT_WAIT_SECONDS),
      limit,
    },
    output: { results: z.array(delegationViewSchema), cursor: z.string() },
    async handle(context, { cursor, ids, context_id, wait_seconds, limit: max }) {
      const { broker, principal } = context;
      // Before the delegations are read, so that nothing falls between.
      const from = await positionsOf(broker, cursor);
      const named = ids && new Set(ids);
      const settled = await settledOf(context, named ?? new Set());
      const wanted = { ids: named, context_id };
      const isAtOnce = cursor === undefined && settled.length > 0;
      const { records, positions } = isAtOnce
        ? { records: [], positions: from }
        : await context.runWaiting(wait_seconds, (signal) =>
            results(broker, principal, from, { wait_seconds, limit: max, signal }, wanted),
          );
      const views = isAtOnce ? settled : records.map(toListView);
      const next = formatCursor(positions);
      const text = listText(views, "No new results or questions.");
      return { text: `${text}\n\nNext cursor: ${next}`, data: { results: views, cursor: next } };
    },
  }),
  defineTool({
    name: "list_tasks",
    title: "List delegations",
    description:
      "List the delegations that you may see, newest first, in short form: your own, and those to you if you are an agent. Pass next_cursor as cursor to get more; a short page may still have a next_cursor. To find new results, use wait_for_results instead.",
    visibleTo: READERS,
    readOnly: true,
    input: {
      agent: delegationFilterSchema.shape.target.describe("Only delegations to this agent."),
      delegator: delegationFilterSchema.shape.delegator.describe("Only delegations from this principal."),
      context_id: delegationFilterSchema.shape.context_id,
      parent_id: delegationFilterSchema.shape.parent_id,
      state: stateSchema.or(z.array(stateSchema).min(1)).optional().describe("One state or several."),
      error_code: delegationFilterSchema.shape.error_code,
      since: delegationFilterSchema.shape.since.describe("Only delegations created at or after this time."),
      until: delegationFilterSchema.shape.until.describe("Only delegations created before this time."),
      ended_since: delegationFilterSchema.shape.ended_since.describe(
        "Only delegations that ended at or after this time.",
      ),
      q: delegationFilterSchema.shape.q.describe(
        "Only delegations whose task has this text in its first 100 bytes. Case is ignored.",
      ),
      cursor: z.string().min(1).max(256).optional(),
      limit,
    },
    output: {
      tasks: z.array(delegationViewSchema),
      next_cursor: z.string().nullable(),
      scanned_to: z.string().nullable(),
    },
    async handle({ broker, principal }, { agent: target, state, ...query }) {
      const states = typeof state === "string" ? [state] : state;
      const page = await list(broker, principal, { target, state: states, ...query });
      const { records, next_cursor } = page;
      const scanned_to = page.scanned_to && toInstant(page.scanned_to);
      const tasks = records.map(toListView);
      const more = next_cursor === null ? "" : `\n\nNext cursor: ${next_cursor}`;
      return {
        text: `${listText(tasks, "No delegations.")}${more}`,
        data: { tasks, next_cursor, scanned_to },
      };
    },
  }),
];
