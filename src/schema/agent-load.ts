/** The load of an agent. A file of its own, because the console does not read it. */
import * as z from "zod";
import { instantSchema } from "./values.ts";

/** How much work waits for an agent, for what starts workers. */
export const agentLoadSchema = z.strictObject({
  /** How many delegations wait for a worker and are ready now. */
  queued: z.int().min(0),
  /** How many leases its workers hold. */
  leased: z.int().min(0),
  /**
   * How many more workers, with one delegation each, would have work now: what is queued, at most what `max_working` leaves, and one
   * for each conversation of an agent with `serial_by`. 0 while the agent is paused, and for a push agent.
   */
  wanted: z.int().min(0),
  /** Its `max_working`; null: any number. */
  max_working: z.int().nullable(),
  /** Whether the operator has paused the agent. */
  paused: z.boolean(),
  /** Since when its oldest waiting delegation could have been taken; null: none waits. */
  oldest_waiting_at: instantSchema.nullable(),
});
export type AgentLoad = z.infer<typeof agentLoadSchema>;
