/** The library: what users import. Limit: it speaks HTTP to a broker; it does not contain one. */
export { Agent } from "./client/agent.ts";
export { Delegator } from "./client/delegator.ts";
export { ErrandApiError } from "./client/errors.ts";
