/** The parsed form of JSON that a record stores. */
import type * as z from "zod";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type Delegation, delegationSchema, interruptSchema } from "../../schema/delegation.ts";

export const toDelegation = ({ json }: Pick<StoredDelegation, "json">): Delegation =>
  delegationSchema.parse(JSON.parse(json));

/** The record stores an interrupt's times in fields of their own. */
const storedInterruptSchema = interruptSchema.pick({ id: true, kind: true, requests: true });

/** The open question; null when there is none. */
export function openInterrupt(record: StoredDelegation): z.infer<typeof storedInterruptSchema> | null {
  const interrupt = record.get("interrupt");
  return interrupt === null ? null : storedInterruptSchema.parse(JSON.parse(interrupt));
}
