/**
 * One of several gateways, in a process that a supervisor started: the supervisor owns Redis, the data directory and
 * the signals. If the supervisor dies, this process finishes its requests and ends.
 */
import { resolve } from "node:path";
import type { Config } from "../config.ts";
import { type Gateway, startGateway } from "../gateway/gateway.ts";
import { type Channel, Siblings } from "../gateways/siblings.ts";
import { createLog } from "../telemetry/log.ts";
import { ServeError, startFailure } from "./errors.ts";
import { optionsOf } from "./running.ts";
import { signInLine } from "./sign-in-link.ts";

/** How long a stop may take once the supervisor is dead; a live supervisor kills a process that stops for longer. */
const ORPHAN_MS = 9_000;

/** Returns the exit code. */
export async function serveSupervised(config: Config, channel: Channel): Promise<number> {
  // Ctrl-C and a closed terminal send their signals to all processes; the supervisor decides.
  process.on("SIGINT", () => {}).on("SIGHUP", () => {});
  // Once the supervisor is gone, nobody reads the log.
  process.stderr.on("error", () => {});
  const stop = stopOf(channel);
  const siblings = await Siblings.join(channel);
  const { setup, handlers } = siblings;
  const write = (line: string) => void process.stderr.write(line);
  const log = createLog(config.ERRAND_LOG_LEVEL, write, { gateway: setup.number });
  handlers.stop = (handover) => stop.now(handover);
  process.on("SIGTERM", () => siblings.askToBeReplaced());
  let gateway: Gateway;
  try {
    gateway = await startGateway({
      ...optionsOf({
        config: { ...config, ERRAND_PORT: setup.port },
        target: setup.redis,
        operatorToken: setup.operator_token,
        onRedisLost: () => siblings.redisLost(),
        log,
      }),
      siblings,
    });
  } catch (error) {
    const failure = await startFailure(error, config, resolve(config.ERRAND_DATA_DIR ?? ".errand"));
    if (!(failure instanceof ServeError)) throw failure;
    process.stderr.write(`errand: ${failure.message}\n`);
    return failure.exitCode;
  }
  const { broker } = gateway;
  handlers.signIn = () => signInLine(broker);
  handlers.siblingDied = (dead) => {
    const failed = (error: unknown) => log.debug({ err: String(error) }, "presence not withdrawn");
    broker.presence.withdraw(dead).catch(failed);
  };
  siblings.ready(gateway.port, broker.gateway);
  const handover = await stop.requested;
  siblings.stopping(gateway.busy());
  await gateway.close({ handover });
  await siblings.leave();
  return 0;
}

interface Stop {
  /** Resolves when a stop is requested: true if the other gateways keep serving. */
  readonly requested: Promise<boolean>;
  readonly now: (handover: boolean) => void;
}

function stopOf(channel: Channel): Stop {
  let now: (handover: boolean) => void = () => {};
  const requested = new Promise<boolean>((resolve) => {
    now = resolve;
  });
  channel.onClose(() => {
    setTimeout(() => process.exit(0), ORPHAN_MS).unref();
    now(false);
  });
  return { requested, now };
}
