/** Runs several gateways on one port (ERRAND_WORKERS), each in a process of its own (serve/child-gateway.ts). */
import { forkWith } from "../gateways/fork.ts";
import { GatewayStartError, Supervisor } from "../gateways/supervisor.ts";
import { ServeError } from "./errors.ts";
import type { Parts, Running } from "./running.ts";

interface SuperviseParts extends Parts {
  /** Writes a line of the log. */
  readonly write: (line: string) => void;
  /** Prints any other line. */
  readonly say: (line: string) => void;
  /** Ends the start, too. */
  readonly stop: AbortSignal;
}

/** How long gateways that have started may take to stop when others have not. */
const EARLY_STOP_MS = 5_000;

/** Null if it was stopped before all gateways were ready. */
export async function superviseGateways(parts: SuperviseParts): Promise<Running | null> {
  const { config, target, operatorToken, onRedisLost, log, write, say, stop } = parts;
  const supervisor = new Supervisor({
    count: config.ERRAND_WORKERS,
    setup: { port: config.ERRAND_PORT, redis: target, operator_token: operatorToken },
    // A line that is not JSON is not from the log: it is the reason for a failed start, or Node's last output.
    fork: forkWith((line) => (line.startsWith("{") ? write(`${line}\n`) : say(line))),
    log,
    onRedisLost,
  });
  let stopped: Promise<void> | undefined;
  const stopEarly = () => {
    stopped = supervisor.stop(EARLY_STOP_MS).stopped;
  };
  if (stop.aborted) return null;
  stop.addEventListener("abort", stopEarly, { once: true });
  let port: number | null;
  try {
    port = await supervisor.start();
  } catch (error) {
    await supervisor.stop(0).stopped;
    throw toEnded(error);
  } finally {
    stop.removeEventListener("abort", stopEarly);
  }
  await stopped;
  if (port === null) return null;
  log.info({ gateways: config.ERRAND_WORKERS }, "all gateways are ready");
  return {
    port,
    ended: supervisor.failed.catch((error: unknown) => {
      throw toEnded(error);
    }),
    signIn: () => supervisor.signIn(),
    roll: () => supervisor.roll(),
    close: (graceMs) => {
      const { busy, stopped } = supervisor.stop(graceMs);
      return { busy, closed: stopped };
    },
    kill: () => supervisor.killAll(),
  };
}

const toEnded = (error: unknown): unknown =>
  error instanceof GatewayStartError ? new ServeError(error.message, error.exitCode) : error;
