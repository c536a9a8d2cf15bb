/**
 * Every shape on the wire: zod first, types inferred. Limit: rules that need stored data live in the engine.
 */
export * from "./a2a.ts";
export * from "./agent.ts";
export * from "./agent-load.ts";
export * from "./answered.ts";
export * from "./audit.ts";
export * from "./await.ts";
export * from "./batch.ts";
export * from "./budget.ts";
export { boundedChangesSchema, changeSchema } from "./changes.ts";
export * from "./credentials.ts";
export * from "./delegation.ts";
export * from "./errors.ts";
export * from "./event.ts";
export * from "./file.ts";
export * from "./file-url.ts";
export * from "./json-object.ts";
export * from "./lease.ts";
export * from "./link.ts";
export * from "./notice.ts";
export * from "./presence.ts";
export * from "./problem.ts";
export * from "./rule.ts";
export * from "./rule-request.ts";
export * from "./schedule.ts";
export * from "./session.ts";
export * from "./stats.ts";
export * from "./status.ts";
export * from "./subscription.ts";
export * from "./token.ts";
export * from "./usage.ts";
export * from "./values.ts";
export * from "./votes.ts";
