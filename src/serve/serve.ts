/**
 * Runs a broker until a signal stops it: configuration, Redis (embedded or external), gateway, signals. One gateway in
 * this process, or several under it (ERRAND_WORKERS, several-gateways.ts); gateways elsewhere share a Redis through
 * ERRAND_REDIS_URL or the data directory. Start and stop are one sequence, so it is long.
 */
import { join, resolve } from "node:path";
import {
  type Config,
  ConfigError,
  EXIT_CONFIG,
  type Flags,
  hasPortOfService,
  readConfig,
} from "../config.ts";
import { addressUrlOf, urlOf } from "../gateway/url-of.ts";
import { channelToSupervisor } from "../gateways/fork.ts";
import { createLog, type Log } from "../telemetry/log.ts";
import { textLine } from "../telemetry/log-text.ts";
import { announce } from "./announcement.ts";
import { DiskWatch } from "./disk-watch.ts";
import { checkAddress, ServeError, startFailure } from "./errors.ts";
import {
  howClientsConnect,
  howToSignIn,
  nextSteps,
  reachableLines,
  sharesBroker,
  variablesFor,
} from "./lines.ts";
import { realPathOf } from "./own-command.ts";
import type { Running } from "./running.ts";
import { superviseGateways } from "./several-gateways.ts";
import { type StopCause, type StopSignals, stopSignals } from "./signals.ts";
import { checkDataDir, openStorage, operatorTokenIn, type Storage } from "./storage.ts";

/** How long the process that started the embedded Redis has to restart it before another process does. */
const OWNER_FIRST_MS = 300;
/** How long the gateway may take to stop. The embedded Redis gets the rest of nine seconds, even if something hangs. */
const STOP_MS = 7_500;

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Returns the exit code: 0 after a clean stop, 78 for a wrong configuration, 75 if Redis is unavailable. */
export async function serve(env: NodeJS.ProcessEnv, flags: Flags = {}): Promise<number> {
  let config: Config;
  try {
    config = readConfig(env, flags);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    say([error.message, ...error.problems.map((problem) => `  ${problem}`)].join("\n"));
    return EXIT_CONFIG;
  }
  const channel = channelToSupervisor();
  if (channel) return (await import("./child-gateway.ts")).serveSupervised(config, channel);
  const write = writerOf(config, env);
  const log = createLog(config.ERRAND_LOG_LEVEL, write);
  // `auto` on one core runs one gateway, which a reload must not stop.
  const stop = stopSignals(config.ERRAND_WORKERS > 1 || env.ERRAND_WORKERS === "auto");
  if (hasPortOfService(env)) {
    log.info(
      { port: config.ERRAND_PORT },
      "ERRAND_PORT is ignored: it is a URL that Kubernetes or Docker sets for a service named errand",
    );
  }
  try {
    await run({ config, env, flags }, { log, write }, stop);
    return 0;
  } catch (error) {
    if (!(error instanceof ServeError)) throw error;
    say(`errand: ${error.message}`);
    return error.exitCode;
  } finally {
    stop.release();
  }
}

/** Lines for people on a terminal, JSON otherwise. */
function writerOf({ ERRAND_LOG_FORMAT: format }: Config, env: NodeJS.ProcessEnv): (line: string) => void {
  const { stderr } = process;
  const isTerminal = stderr.isTTY === true;
  if ((format ?? (isTerminal ? "text" : "json")) === "json") return (line) => void stderr.write(line);
  const color = isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
  return (line) => void stderr.write(textLine(line, color));
}

interface Output {
  readonly log: Log;
  /** Writes a line of the log in the format of the configuration. */
  readonly write: (line: string) => void;
}

interface Settings {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly flags: Flags;
}

async function run({ config, env, flags }: Settings, output: Output, signals: StopSignals): Promise<void> {
  const { log } = output;
  const stop = signals.signal;
  const { ERRAND_EGRESS_PROXY: egressProxy } = config;
  if (egressProxy !== undefined)
    log.info({ proxy: egressProxy.place }, "outgoing calls to public addresses go through a proxy");
  const dataDir = resolve(config.ERRAND_DATA_DIR ?? ".errand");
  await checkDataDir(dataDir);
  await checkAddress(config, dataDir, flags);
  const storage = await openStorage(config, env, dataDir, say, log);
  const disk = storage.embedded === null ? null : new DiskWatch(dataDir, log);
  await disk?.start();
  let stoppedAt = Date.now();
  try {
    const operatorToken = config.ERRAND_OPERATOR_TOKEN ?? (await operatorTokenIn(dataDir));
    const place = { dataDir, flags };
    const gateways = await start(config, storage, operatorToken, place, output, stop);
    if (gateways === null) return;
    signals.onHangup(() => gateways.roll());
    signals.onSecond(() => gateways.kill());
    const { ERRAND_HOST: host, ERRAND_PUBLIC_URL: publicUrl } = config;
    const { port } = gateways;
    const url = urlOf(host, port);
    const announced = await announce(dataDir, { url: await addressUrlOf(host, port), port }, log);
    say(`errand is ready at ${url}`);
    if (announced.other !== null && storage.embedded !== null) say(sharesBroker(announced.other, dataDir));
    if (config.ERRAND_OPERATOR_TOKEN === undefined) {
      say(`the operator token is in ${join(dataDir, "operator-token")}`);
    }
    for (const line of reachableLines({ host, port, publicUrl })) say(line);
    if (config.ERRAND_WORKERS > 1) say(howToReplace(config.ERRAND_WORKERS));
    const hasOwnToken = config.ERRAND_OPERATOR_TOKEN !== undefined;
    const started = { dataDir, url, hasOwnToken, announced };
    say(howClientsConnect(started));
    const program = realPathOf(process.argv[1] ?? "errand") ?? "errand";
    const variables = variablesFor(started);
    const clients = { folder: resolve("."), path: env.PATH ?? "", program, variables };
    const isAtTerminal = process.stderr.isTTY && storage.embedded !== null;
    const signIn = isAtTerminal ? await gateways.signIn() : undefined;
    say(signIn ?? howToSignIn(clients));
    if (process.stderr.isTTY) say(nextSteps(clients));
    const stopped = new Promise<void>((done) => stop.addEventListener("abort", () => done(), { once: true }));
    try {
      if (!stop.aborted) await Promise.race([stopped, gateways.ended]);
    } catch (error) {
      if (error instanceof ServeError) await announced.withdraw();
      throw error;
    }
    stoppedAt = Date.now();
    // First, so that the CLI finds another gateway, if there is one, while this one stops.
    await announced.withdraw();
    const closing = gateways.close(STOP_MS);
    say(stopLine(signals.cause(), await closing.busy));
    await within(closing.closed, STOP_MS + 500, log);
  } finally {
    disk?.stop();
    // Redis ends with this process anyway. It gets the rest of the nine seconds for a clean stop.
    const left = Math.max(500, STOP_MS + 1_500 - (Date.now() - stoppedAt));
    await within(storage.embedded?.stop() ?? Promise.resolve(), left, log);
  }
}

/** With npm or a shell in between, the id of the process that was started is another one. */
const howToReplace = (count: number): string =>
  `${count} gateways; to replace them without a failed request: kill -HUP ${process.pid}`;

function stopLine({ signal, text }: StopCause, busy: number): string {
  const first =
    busy === 0
      ? ""
      : `; first it closes ${busy === 1 ? "one connection" : `${busy} connections`} of agents and watchers`;
  const second = signal === "SIGINT" ? "another Ctrl-C" : "a second signal";
  return `errand is stopping (${text})${first}. That takes at most ten seconds; ${second} ends it at once, and loses nothing`;
}

/** Null if it was stopped before several gateways were ready. */
async function start(
  config: Config,
  { target, embedded }: Storage,
  operatorToken: string,
  { dataDir, flags }: { readonly dataDir: string; readonly flags: Flags },
  { log, write }: Output,
  stop: AbortSignal,
): Promise<Running | null> {
  // Another process may have started the embedded Redis. If that process died, this one starts Redis again.
  const onRedisLost = () => {
    setTimeout(() => {
      embedded
        ?.ensure()
        .catch((error: unknown) => log.debug({ err: String(error) }, "Redis is not back yet"));
    }, OWNER_FIRST_MS).unref();
  };
  const parts = { config, target, operatorToken, onRedisLost, log };
  try {
    if (config.ERRAND_WORKERS > 1) return await superviseGateways({ ...parts, write, say, stop });
    // Only here: a supervisor does not need a gateway's modules, which take about 50 MB.
    const { startOne } = await import("./one-gateway.ts");
    return await startOne(parts);
  } catch (error) {
    // The gateway that could not start has said why.
    if (error instanceof ServeError) throw error;
    throw await startFailure(error, config, dataDir, flags);
  }
}

async function within(work: Promise<void>, ms: number, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn("the stop timed out; something did not finish");
      resolve();
    }, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
