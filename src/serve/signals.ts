/** The signals that stop `errand serve`, or replace its gateways. */
import { closeSync, openSync } from "node:fs";

export interface StopCause {
  readonly signal: "SIGINT" | "SIGTERM" | "SIGHUP";
  readonly text: string;
}

export interface StopSignals {
  /** Aborts on the first signal that asks for a stop. */
  readonly signal: AbortSignal;
  /** The first signal that asked for a stop. */
  readonly cause: () => StopCause;
  /** Sets the action of a SIGHUP that does not ask for a stop. */
  readonly onHangup: (callback: () => unknown) => void;
  /** Called before the second signal ends the process. */
  readonly onSecond: (callback: () => void) => void;
  readonly release: () => void;
}

/**
 * SIGINT, SIGTERM and SIGHUP ask for a stop. A second one, more than a second later, ends the process at once. With
 * several gateways, a SIGHUP replaces them instead, unless the terminal was closed.
 */
export function stopSignals(hasSeveralGateways: boolean): StopSignals {
  const controller = new AbortController();
  const isAtTerminal = process.stdin.isTTY || process.stderr.isTTY;
  let hangUp: () => unknown = () => {};
  let beforeExit = () => {};
  let firstAt = 0;
  let cause: StopCause = { signal: "SIGTERM", text: "SIGTERM" };
  const stop = (signal: StopCause["signal"], text: string = signal) => {
    const now = Date.now();
    // npm and the terminal may each send a signal for one Ctrl-C.
    if (firstAt !== 0 && now - firstAt > 1_000) {
      beforeExit();
      process.exit(130);
    }
    if (firstAt === 0) [firstAt, cause] = [now, { signal, text }];
    controller.abort();
  };
  const hangup = () => {
    if (isAtTerminal && !hasTerminal()) stop("SIGHUP", "its terminal was closed");
    else if (!hasSeveralGateways) stop("SIGHUP", "SIGHUP, which replaces gateways only with ERRAND_WORKERS");
    else if (firstAt === 0) hangUp();
  };
  const handlers = {
    SIGINT: () => stop("SIGINT"),
    SIGTERM: () => stop("SIGTERM"),
    SIGHUP: hangup,
  } as const;
  process.on("SIGINT", handlers.SIGINT).on("SIGTERM", handlers.SIGTERM).on("SIGHUP", handlers.SIGHUP);
  return {
    signal: controller.signal,
    cause: () => cause,
    onHangup: (callback) => {
      hangUp = callback;
    },
    onSecond: (callback) => {
      beforeExit = callback;
    },
    release: () => {
      process.off("SIGINT", handlers.SIGINT).off("SIGTERM", handlers.SIGTERM).off("SIGHUP", handlers.SIGHUP);
    },
  };
}

/** Whether this process still has a terminal. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
