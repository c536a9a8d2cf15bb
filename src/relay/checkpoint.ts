/**
 * The relay's checkpoint: all that it knows beside the delegation and the remote task, so that any process goes on where
 * another was killed. Limit: one remote task at a time.
 */
import * as z from "zod";
import type { Message } from "../schema/a2a.ts";

const markSchema = z.object({
  /** The remote task and its conversation, as the server named them. */
  task: z.string().optional(),
  context: z.string().optional(),
  /** How many of the delegation's answered questions the task has been given. */
  turn: z.int().min(0),
  /** How many follow-ups it has been given. */
  said: z.int().min(0),
  /** A message was on its way; whether it arrived is not known. */
  sending: z.boolean().optional(),
  /** How the question looked that the newest answer is to. */
  asked: z.string().optional(),
});
export type RelayCheckpoint = z.infer<typeof markSchema>;

/** Undefined: there is none, or it is not the relay's. */
export function readCheckpoint(checkpoint: unknown): RelayCheckpoint | undefined {
  const parsed = markSchema.safeParse(checkpoint);
  return parsed.success ? parsed.data : undefined;
}

/** How many questions of a delegation were answered. */
export function turnsIn(history: readonly Message[]): number {
  const ids = history.flatMap(({ role, metadata }) => {
    return role === "ROLE_USER" && typeof metadata?.interrupt_id === "string" ? [metadata.interrupt_id] : [];
  });
  return new Set(ids).size;
}
