/** The library: what users import. Limit: it speaks HTTP to a broker; it does not contain one. */
export { Admin } from "./client/admin.ts";
export { Agent, type AgentOptions } from "./client/agent.ts";
export { type Delegated, type DelegateOptions, Delegator, type EventFilter } from "./client/delegator.ts";
export { ErrandApiError } from "./client/errors.ts";
export type { ConnectionOptions } from "./client/http.ts";
export { LeaseLostError } from "./client/lease-keeper.ts";
export {
  type AgentEvent,
  AgentStoppingError,
  type Handler,
  type Outcome,
  type Reply,
  type Work,
} from "./client/work.ts";
