/**
 * The relay's checkpoint: its only state besides the delegation and the remote task. With it, another process can continue
 * after one was killed.
 */
import * as z from "zod";
import type { Message } from "../schema/a2a.ts";
import type { RelayPort } from "./port.ts";

const checkpointSchema = z.object({
  /** The remote task and its conversation, as the server named them. */
  task: z.string().optional(),
  context: z.string().optional(),
  /** How many of the delegation's answers the task has received. */
  turn: z.int().min(0),
  /** How many follow-ups it has received. */
  said: z.int().min(0),
  /** A message is being sent; whether it arrived is unknown. */
  sending: z.boolean().optional(),
  /** The server has the message that is being sent, but its answer was not readable. */
  arrived: z.boolean().optional(),
  /** Key of the question that the newest answer is for; see `questionKey`. */
  asked: z.string().optional(),
});
export type RelayCheckpoint = z.infer<typeof checkpointSchema>;

/** Returns undefined if there is none, or if another program wrote it. */
export function readCheckpoint(checkpoint: unknown): RelayCheckpoint | undefined {
  const parsed = checkpointSchema.safeParse(checkpoint);
  return parsed.success ? parsed.data : undefined;
}

/** How many questions of a delegation are answered. */
function countAnswers(history: readonly Message[]): number {
  const ids = history.flatMap(({ role, metadata }) => {
    return role === "ROLE_USER" && typeof metadata?.interrupt_id === "string" ? [metadata.interrupt_id] : [];
  });
  return new Set(ids).size;
}

/** Keeps the relay's checkpoint in memory and saves it to the broker. Each save sends the newest one. */
export class CheckpointStore {
  /** How many questions of the delegation are answered. */
  readonly answerCount: number;
  readonly #port: RelayPort;
  #checkpoint: RelayCheckpoint;
  #saved: Promise<void> = Promise.resolve();

  constructor(port: RelayPort) {
    this.#port = port;
    this.answerCount = countAnswers(port.lease.delegation.history);
    this.#checkpoint = readCheckpoint(port.lease.checkpoint) ?? { turn: this.answerCount, said: 0 };
  }

  get checkpoint(): RelayCheckpoint {
    return this.#checkpoint;
  }

  /** Changes the checkpoint in memory at once, so that a run that is stopped meanwhile cancels the right task. */
  save(checkpoint: RelayCheckpoint): Promise<void> {
    this.#checkpoint = checkpoint;
    const saved = this.#saved.then(() => this.#port.saveCheckpoint({ ...this.#checkpoint }));
    this.#saved = saved.catch(() => undefined);
    return saved;
  }

  change(members: Partial<RelayCheckpoint>): Promise<void> {
    return this.save({ ...this.#checkpoint, ...members });
  }
}
