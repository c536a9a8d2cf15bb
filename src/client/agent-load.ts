/** The load of an agent. No method of `Admin`, because the console, which loads `Admin`, does not need it. */
import { type AgentLoad, agentLoadSchema } from "../schema/agent-load.ts";
import type { CallOptions } from "./admin.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";

/**
 * How much work waits for the agent, and how many more workers would have work now (`wanted`). Throws `agent_unknown`, and
 * `forbidden` unless the token is the agent's own, an approver's, a viewer's or the operator's.
 *
 * @example
 * ```ts
 * const { wanted } = await agentLoad("scout");
 * for (let n = 0; n < wanted; n += 1) startWorker();
 * ```
 */
export function agentLoad(
  name: string,
  { signal, ...connection }: ConnectionOptions & CallOptions = {},
): Promise<AgentLoad> {
  const path = route`/v1/agents/${name}/load`;
  return new Http(connection).requestWithRetry(agentLoadSchema, { path, signal });
}
