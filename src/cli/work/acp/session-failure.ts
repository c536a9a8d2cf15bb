/**
 * A turn that failed although its answer says `end_turn`. The adapter of Codex reports why beside it, to clients that ask
 * for it; to others it sends the error as if the model had said it. Copilot always does the latter.
 */
import * as z from "zod";
import { AgentFailedError, AgentRefusedError } from "./errors.ts";
import type { OwnWords } from "./own-words.ts";
import type { Prompted } from "./schemas.ts";

const AUTH_REQUIRED = -32000;
const INTERNAL = -32603;

/** Of the client's capabilities. */
export const REPORTS_FAILURES = { jetbrains: { air: { version: 1, capabilities: ["sessionFailure"] } } };

const failureSchema = z.object({
  jetbrains: z.object({
    air: z.object({
      sessionFailure: z.object({ category: z.string().optional(), severity: z.string(), title: z.string() }),
    }),
  }),
});

export function failureOf({ _meta, usage }: Prompted, own: OwnWords | undefined): Error | undefined {
  // With usage, a model has answered. Then nobody can tell its words from the agent's, and they must not pause the worker.
  if (own?.kind === "failed")
    return usage == null
      ? new AgentRefusedError(INTERNAL, own.words, undefined)
      : new AgentFailedError(own.words);
  const failure = failureSchema.safeParse(_meta).data?.jetbrains.air.sessionFailure;
  if (failure?.severity !== "error") return undefined;
  const code = failure.category === "access" ? AUTH_REQUIRED : INTERNAL;
  return new AgentRefusedError(code, failure.title, undefined);
}
