/** ListTasks: an agent's tasks that the caller may see, most recently changed first. */
import type { ListTasksRequest } from "@a2a-js/sdk";
import { taskStateToJSON } from "@a2a-js/sdk";
import { listByUpdate } from "../../../engine/delegations/list-by-update.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import { fromA2aState, statesOf } from "../../../schema/a2a-task.ts";
import type { A2AContext } from "../context.ts";

const DEFAULT_PAGE_SIZE = 50;

export async function listTasks(
  { request, agent }: A2AContext,
  params: ListTasksRequest,
): Promise<{ records: StoredDelegation[]; nextPageToken: string; pageSize: number; totalSize: number }> {
  const pageSize = params.pageSize ?? DEFAULT_PAGE_SIZE;
  const state = fromA2aState(taskStateToJSON(params.status))?.state;
  const { records, next_cursor, total } = await listByUpdate(request.broker, request.principal, {
    target: agent,
    context_id: params.contextId || undefined,
    state: state && statesOf(state),
    changed_since: params.statusTimestampAfter ? Date.parse(params.statusTimestampAfter) : undefined,
    cursor: params.pageToken || undefined,
    limit: pageSize,
  });
  return { records, nextPageToken: next_cursor ?? "", pageSize: records.length, totalSize: total };
}
