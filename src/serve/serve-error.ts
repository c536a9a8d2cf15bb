/** Why `errand serve` ends: a known cause, reported without a stack trace. */
export class ServeError extends Error {
  override readonly name = "ServeError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
