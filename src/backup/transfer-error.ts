/**
 * Why data was not written into a Redis, or not read from it. `in_use`, `in_progress`, `not_empty`, `too_old`,
 * `unreachable`: nothing was changed. `failed`, `taken_over`: a part may be written. `unfinished`,
 * `growing`: the data that should be copied is in the middle of a restore or a growth.
 */
export class TransferError extends Error {
  override readonly name = "TransferError";
  readonly reason:
    | "in_use"
    | "in_progress"
    | "not_empty"
    | "too_old"
    | "unreachable"
    | "failed"
    | "taken_over"
    | "unfinished"
    | "growing";

  constructor(reason: TransferError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}
