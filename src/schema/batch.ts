/** Many delegations in one request. */
import * as z from "zod";
import { delegateRequestSchema, delegationSchema } from "./delegation.ts";
import { jsonObjectSchema } from "./json-object.ts";
import { LIMITS } from "./limits.ts";
import { problemSchema } from "./problem.ts";

/** An item of a batch: work for an agent, and its own idempotency key. */
export const batchItemSchema = delegateRequestSchema.safeExtend({
  /** As the header `Idempotency-Key`. Default: made from that of the batch and the item's place, if the batch has one. */
  idempotency_key: z.string().min(1).max(255).optional(),
});

/** A batch. Each item is validated on its own, so that an invalid one does not affect the others. */
export const batchRequestSchema = z.strictObject({
  /** The items, 1 to 100, in the order in which they are delegated. */
  delegations: z.array(jsonObjectSchema).min(1).max(LIMITS.batch.value),
});
/** A batch as a caller sends it. */
export const batchInputSchema = z.strictObject({
  /** The items, 1 to 100, in the order in which they are delegated. */
  delegations: z.array(batchItemSchema).min(1).max(LIMITS.batch.value),
});

/** An accepted item. */
export const batchAcceptedSchema = z.strictObject({
  /** 202: accepted; 200: the same item was accepted before. */
  status: z.int(),
  /** The delegation. */
  delegation: delegationSchema,
});
/** A refused item. */
export const batchRefusedSchema = z.strictObject({
  /** The HTTP status that the item alone would have got. */
  status: z.int(),
  /** Why it was refused. */
  error: problemSchema,
});
/** What became of the items. */
export const batchResultSchema = z.strictObject({
  /** An outcome for each item, in their order. */
  results: z.array(z.union([batchAcceptedSchema, batchRefusedSchema])),
});
