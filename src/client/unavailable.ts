/** The error with which a handler says that its worker cannot work at all now. */

export interface WorkerUnavailableOptions {
  /** How long it will last, as the service that refused says. Default: the worker finds out, in growing pauses. */
  readonly retryAfterSeconds?: number | undefined;
  /** More about it, for those who see the delegation: the reason of its release. Default: the message. */
  readonly detail?: string | undefined;
  /** How long the work stays in the queue, in seconds, so that other work goes first. Default: 10. */
  readonly delaySeconds?: number | undefined;
  readonly cause?: unknown;
}

const CODE = "worker_unavailable";

/**
 * Throw it from a handler when no work would succeed now: the account has reached its limit, nobody is signed in, a program
 * is missing, the network is gone. The work returns to the queue, which costs no attempt, and the agent pauses. Its message
 * is shown to everyone who sees the agent, so it must not contain anything of the task. Any error with the `code`
 * `worker_unavailable` counts as one. {@link Handler} errors of the SDKs of OpenAI, Anthropic and Google Gemini that mean
 * the same (401, 402, 429, 503, 529, no connection) do, too.
 *
 * @example
 * ```ts
 * if (response.status === 429)
 *   throw new WorkerUnavailableError("the model's API refuses more requests", { retryAfterSeconds: 60 });
 * ```
 */
export class WorkerUnavailableError extends Error {
  override readonly name = "WorkerUnavailableError";
  readonly code = CODE;
  readonly retryAfterSeconds: number | undefined;
  readonly detail: string | undefined;
  readonly delaySeconds: number | undefined;

  constructor(reason: string, options: WorkerUnavailableOptions = {}) {
    const { retryAfterSeconds, detail, delaySeconds, cause } = options;
    super(reason, cause === undefined ? undefined : { cause });
    this.retryAfterSeconds = retryAfterSeconds;
    this.detail = detail;
    this.delaySeconds = delaySeconds;
  }
}

/** The error as a {@link WorkerUnavailableError}, also if another copy of the library made it; null for other errors. */
export function asUnavailable(error: unknown): WorkerUnavailableError | null {
  if (error instanceof WorkerUnavailableError) return error;
  if (!(error instanceof Error) || !("code" in error) || error.code !== CODE) return null;
  const after = "retryAfterSeconds" in error ? error.retryAfterSeconds : undefined;
  return new WorkerUnavailableError(error.message, {
    retryAfterSeconds: typeof after === "number" && after >= 0 ? after : undefined,
    cause: error,
  });
}
