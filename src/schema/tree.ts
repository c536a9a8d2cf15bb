/** A tree of delegations as its root's delegator sees it: who works on what part, and how far it is. */
import * as z from "zod";
import { stateSchema } from "./delegation.ts";
import { resetEventSchema } from "./event.ts";
import { agentNameSchema, delegationIdSchema, instantSchema, principalSchema } from "./values.ts";

/** The most nodes of one answer. */
export const TREE_NODES = 2_000;

export const treeNodeSchema = z.strictObject({
  /** The delegation. */
  id: delegationIdSchema,
  /** The delegation above it; null: it has none. */
  parent_id: delegationIdSchema.nullable(),
  /** 0 for the requested delegation, 1 for its children. */
  depth: z.int().min(0),
  /** The agent that it is for. */
  target: agentNameSchema,
  /** The principal that delegated it. */
  delegator: principalSchema,
  /** Its state. */
  state: stateSchema,
  /** When it was accepted. */
  created_at: instantSchema,
  /** When it ended; null: it has not. */
  finished_at: instantSchema.nullable(),
  /** Whether the caller may read all of it, at `/v1/delegations/{id}`. */
  readable: z.boolean(),
  /** Some delegations under it are left out, because the answer is full. Ask for the tree of this one. */
  more_below: z.boolean(),
});
/** A delegation of a tree: its place, its agent and its state. */
export type TreeNode = z.infer<typeof treeNodeSchema>;

export const treeSchema = z.strictObject({
  /** The delegation and those under it, level by level, the oldest of a parent first. */
  nodes: z.array(treeNodeSchema),
  /** Send it as `after` to watch what happens after this answer. */
  cursor: z.string(),
});
/** A delegation and everything delegated under it. */
export type Tree = z.infer<typeof treeSchema>;

export const nodeEventSchema = z.object({
  /** The cursor; `after` resumes from it. */
  id: z.string(),
  /** A delegation of the tree was accepted, or its state may have changed. */
  type: z.literal("DELEGATION_NODE"),
  /** The delegation that the event is about. */
  delegation_id: delegationIdSchema,
  /** The root of the tree. */
  root_id: delegationIdSchema,
  /** Only in the first event of a delegation: the one above it. */
  parent_id: delegationIdSchema.optional(),
  /** The number of the delegation's event that this one shows. */
  seq: z.int().min(1),
  /** When it happened. */
  at: instantSchema,
  /** The delegation's state after the event. */
  state: stateSchema,
  /** The agent that it is for. */
  target: agentNameSchema,
  /** The principal that delegated it. */
  delegator: principalSchema,
  /** The conversation that the delegation belongs to. */
  context_id: z.string(),
});
/** What happened to a delegation of a tree, without its contents. */
export type NodeEvent = z.infer<typeof nodeEventSchema>;

export const treeEventSchema = z.discriminatedUnion("type", [nodeEventSchema, resetEventSchema]);
/** An item of a tree's stream. `RESET`: older events are gone; read the tree again. */
export type TreeEvent = z.infer<typeof treeEventSchema>;

/** A page of a tree's events. */
export const treeEventPageSchema = z.strictObject({
  /** The events after the cursor, oldest first. */
  events: z.array(treeEventSchema),
  /** Send it as `after` to continue. */
  cursor: z.string(),
});
