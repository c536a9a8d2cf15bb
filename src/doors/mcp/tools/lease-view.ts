/** How poll_inbox shows leased work to a model. Limit: what does not fit is cut, and marked. */
import * as z from "zod";
import type { Lease } from "../../../schema/lease.ts";
import { newestSaid, Room, saidLine, saidOf, saidSchema, wordsOf } from "./content.ts";
import type { Delivery } from "./lease-delivery.ts";

export const workSchema = z.object({
  lease_id: z.string(),
  expires_at: z.string(),
  /** The first call with the lease must come before this; absent when the client has proved that it has the work. */
  confirm_by: z.string().optional(),
  attempt: z.int(),
  delegation_id: z.string(),
  delegator: z.string(),
  context_id: z.string(),
  deadline_at: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  /** What is to be done. */
  task: saidSchema,
  /** Questions, answers and follow-ups so far. */
  history: z.array(saidSchema).optional(),
  /** How many older ones are not shown. */
  history_omitted: z.int().optional(),
});
type Work = z.infer<typeof workSchema>;

export function toWork(
  { lease, confirmed }: Delivery,
  confirmBy: (lease: Lease) => string,
  bytes: number,
): Work {
  const { lease_id: id, expires_at, attempt, delegation } = lease;
  const { delegator, context_id, deadline_at, metadata, message, history } = delegation;
  const room = new Room(bytes);
  const task = saidOf(message, room);
  const said = newestSaid(history, room);
  const omitted = history.length - said.length;
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
    task,
    ...(said.length > 0 && { history: said }),
    ...(omitted > 0 && { history_omitted: omitted }),
  };
}

export function workText(work: Work): string {
  const {
    lease_id: id,
    expires_at,
    confirm_by,
    delegation_id,
    delegator,
    attempt,
    task,
    history = [],
  } = work;
  const said = history.map((one) => `- ${saidLine(one)}`);
  const isCut =
    work.history_omitted !== undefined || [task, ...history].some(({ truncated }) => truncated === true);
  return [
    `Delegation ${delegation_id} from ${delegator}, attempt ${attempt}. lease_id ${id}, yours until ${expires_at}.`,
    "Task:",
    ...wordsOf(task),
    ...(said.length > 0 ? ["Said since:", ...said] : []),
    ...(isCut
      ? ["It is not shown whole. To have all of it: release_task, then poll_inbox with full: true."]
      : []),
    ...(confirm_by === undefined
      ? []
      : [
          `First call report_progress with this lease_id, before ${confirm_by}. Without that call the work goes back for another worker.`,
        ]),
    "Next: do it; call report_progress before the lease ends, then complete_task, fail_task, request_input or release_task.",
  ].join("\n");
}
