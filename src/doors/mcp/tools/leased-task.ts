/** Leased work, as poll_inbox shows it to a model. Limit: long content is cut and marked. */
import * as z from "zod";
import { jsonObjectSchema } from "../../../schema/json-object.ts";
import type { Lease } from "../../../schema/lease.ts";
import {
  ByteBudget,
  contentLines,
  messageText,
  messageViewSchema,
  newestMessages,
  toMessageView,
} from "./content.ts";
import type { DeliveredLease } from "./lease-delivery.ts";
import { partsSchema, partsText, toPartsView } from "./parts-view.ts";

export const leasedTaskSchema = z.object({
  lease_id: z.string(),
  expires_at: z.string(),
  /** Deadline of the first call with the lease; absent when the client proved that it received the work. */
  confirm_by: z.string().optional(),
  attempt: z.int(),
  delegation_id: z.string(),
  delegator: z.string(),
  context_id: z.string(),
  deadline_at: z.string(),
  metadata: jsonObjectSchema,
  /** The JSON Schema that the data of complete_task must fit. */
  result_schema: z.unknown().optional(),
  /** It has one, which is not shown. */
  result_schema_omitted: z.boolean().optional(),
  /** The work. */
  task: messageViewSchema,
  /** Questions, answers and follow-ups. */
  history: z.array(messageViewSchema).optional(),
  /** How many older messages are not shown. */
  history_omitted: z.int().optional(),
  /** The delegations that it waited for last, by wait_for_parts. */
  awaited: partsSchema.optional(),
});
type LeasedTask = z.infer<typeof leasedTaskSchema>;

export function toLeasedTask(
  { lease, confirmed }: DeliveredLease,
  confirmBy: (lease: Lease) => string,
  bytes: number,
): LeasedTask {
  const { lease_id: id, expires_at, attempt, delegation, awaited } = lease;
  const { delegator, context_id, deadline_at, metadata, message, history, result_schema } = delegation;
  const budget = new ByteBudget(bytes);
  const showsSchema = result_schema !== undefined && budget.spendIfFits(result_schema);
  const task = toMessageView(message, budget);
  const shown = newestMessages(history, budget);
  const omitted = history.length - shown.length;
  return {
    lease_id: id,
    expires_at,
    ...(!confirmed && { confirm_by: confirmBy(lease) }),
    attempt,
    delegation_id: delegation.id,
    delegator,
    context_id,
    deadline_at,
    metadata,
    ...(showsSchema && { result_schema }),
    ...(result_schema !== undefined && !showsSchema && { result_schema_omitted: true }),
    task,
    ...(shown.length > 0 && { history: shown }),
    ...(omitted > 0 && { history_omitted: omitted }),
    ...(awaited && { awaited: toPartsView(awaited, budget) }),
  };
}

export function leasedTaskText(work: LeasedTask): string {
  const {
    lease_id: id,
    expires_at,
    confirm_by,
    delegation_id,
    delegator,
    attempt,
    task,
    history = [],
    result_schema,
    result_schema_omitted,
    awaited,
  } = work;
  const messages = history.map((message) => `- ${messageText(message)}`);
  const isCut =
    work.history_omitted !== undefined ||
    result_schema_omitted ||
    [task, ...history].some(({ truncated }) => truncated === true);
  return [
    `Delegation ${delegation_id} from ${delegator}, attempt ${attempt}. lease_id ${id}, leased to you until ${expires_at}.`,
    "Task:",
    ...contentLines(task),
    ...(result_schema === undefined
      ? []
      : [`The data of complete_task must fit this JSON Schema: ${JSON.stringify(result_schema)}`]),
    ...(messages.length > 0 ? ["Messages since:", ...messages] : []),
    ...(awaited === undefined ? [] : [partsText(awaited)]),
    ...(isCut
      ? ["The task is cut. To see all of it, call release_task, then poll_inbox with full: true."]
      : []),
    ...(confirm_by === undefined
      ? []
      : [
          `First call report_progress with this lease_id, before ${confirm_by}. Otherwise the work goes back to the queue for another worker.`,
        ]),
    "Next: do the work. Call report_progress before the lease expires, then complete_task, fail_task, request_input, wait_for_parts or release_task.",
  ].join("\n");
}
