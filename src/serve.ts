/**
 * Runs a broker until a signal stops it: configuration, Redis (embedded or external), gateway, signals. One gateway per
 * process; gateways share a Redis through ERRAND_REDIS_URL or the data directory. Start and stop are one sequence, so it is
 * long.
 */
import { chmod, link, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { announce, findRunningGateway } from "./announcement.ts";
import { type Gateway, startGateway, urlOf } from "./app.ts";
import { howClientsConnect, variablesFor } from "./client-access.ts";
import { type Config, ConfigError, EXIT_CONFIG, readConfig } from "./config.ts";
import { embeddedOptions } from "./embedded-options.ts";
import { howToSignIn, nextSteps } from "./next-steps.ts";
import { reachableLines } from "./reachable.ts";
import { checkServer } from "./redis/check.ts";
import { connect, type RedisTarget, reasonOf } from "./redis/connect.ts";
import { type EmbeddedRedis, startEmbedded } from "./redis/embedded.ts";
import { DataDirError, secureDataDir } from "./redis/embedded-home.ts";
import { RedisBinaryError } from "./redis/find-server.ts";
import { LayoutError } from "./redis/layout.ts";
import { randomId } from "./redis/shards.ts";
import { signInLine } from "./sign-in-link.ts";
import { createLog, type Log } from "./telemetry/log.ts";
import { textLine } from "./telemetry/log-text.ts";

const EXIT_TRANSPORT = 75;
/** How long the process that started the embedded Redis has to restart it before another process does. */
const OWNER_FIRST_MS = 300;
const CANNOT_LISTEN = ["EADDRINUSE", "EACCES", "EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN"];
/** How long the gateway may take to stop. The embedded Redis gets the rest of ten seconds, even if something hangs. */
const STOP_MS = 7_500;

interface Storage {
  readonly target: RedisTarget;
  readonly embedded: EmbeddedRedis | null;
}

/** A failed start with a known cause, reported without a stack trace. */
class StartError extends Error {
  override readonly name = "StartError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Returns the exit code: 0 after a clean stop, 78 for a wrong configuration, 75 if Redis is unavailable. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    say([error.message, ...error.problems.map((problem) => `  ${problem}`)].join("\n"));
    return EXIT_CONFIG;
  }
  const log = createLog(config.ERRAND_LOG_LEVEL, writerOf(config, env));
  const stop = stopSignal();
  try {
    await run(config, env, log, stop.signal);
    return 0;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
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

async function run(config: Config, env: NodeJS.ProcessEnv, log: Log, stop: AbortSignal): Promise<void> {
  const dataDir = resolve(config.ERRAND_DATA_DIR ?? ".errand");
  await checkDataDir(dataDir);
  await checkAddress(config, dataDir);
  const storage = await openStorage(config, env, dataDir, log);
  let stoppedAt = Date.now();
  try {
    const operatorToken = config.ERRAND_OPERATOR_TOKEN ?? (await operatorTokenIn(dataDir));
    const gateway = await start(config, storage, operatorToken, dataDir, log);
    const url = urlOf(config.ERRAND_HOST, gateway.port);
    const announced = await announce(dataDir, { url, port: gateway.port }, log);
    say(`errand is ready at ${url}`);
    if (config.ERRAND_OPERATOR_TOKEN === undefined) {
      say(`the operator token is in ${join(dataDir, "operator-token")}`);
    }
    const { ERRAND_HOST: host, ERRAND_PUBLIC_URL: publicUrl } = config;
    for (const line of reachableLines({ host, port: gateway.port, publicUrl })) say(line);
    const hasOwnToken = config.ERRAND_OPERATOR_TOKEN !== undefined;
    const started = { dataDir, url, hasOwnToken, announced };
    say(howClientsConnect(started));
    const program = process.argv[1] ?? "errand";
    const variables = variablesFor(started);
    const place = { folder: resolve("."), path: env.PATH ?? "", program, variables };
    const isAtTerminal = process.stderr.isTTY && storage.embedded !== null;
    const signIn = isAtTerminal ? await signInLine(gateway.broker) : undefined;
    say(signIn ?? (await howToSignIn(place)));
    if (process.stderr.isTTY) say(await nextSteps(place));
    if (!stop.aborted) await new Promise((done) => stop.addEventListener("abort", done, { once: true }));
    say(stopLine(gateway.busy()));
    stoppedAt = Date.now();
    // First, so that the CLI finds another gateway, if there is one, while this one stops.
    await announced.withdraw();
    await within(gateway.close(), STOP_MS, log);
  } finally {
    // Redis ends with this process anyway. It gets the rest of the ten seconds for a clean stop.
    const left = Math.max(500, STOP_MS + 1_500 - (Date.now() - stoppedAt));
    await within(storage.embedded?.stop() ?? Promise.resolve(), left, log);
  }
}

function stopLine(busy: number): string {
  const first =
    busy === 0
      ? ""
      : `; first it closes ${busy === 1 ? "one connection" : `${busy} connections`} of agents and watchers`;
  return `errand is stopping${first}. That takes at most ten seconds; another Ctrl-C ends it at once, and loses nothing`;
}

async function checkDataDir(dataDir: string): Promise<void> {
  try {
    await secureDataDir(dataDir);
  } catch (error) {
    if (error instanceof DataDirError) throw new StartError(error.message, EXIT_CONFIG);
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(`the data directory ${dataDir} cannot be prepared: ${why}`, EXIT_TRANSPORT);
  }
}

async function openStorage(
  config: Config,
  env: NodeJS.ProcessEnv,
  dataDir: string,
  log: Log,
): Promise<Storage> {
  if (config.ERRAND_REDIS_URL !== undefined) {
    const target = { url: config.ERRAND_REDIS_URL };
    await checkExternal(target, log);
    return { target, embedded: null };
  }
  try {
    const embedded = await startEmbedded(embeddedOptions(config, env, dataDir, say, log));
    return { target: { socket: embedded.socket, password: embedded.password }, embedded };
  } catch (error) {
    const exitCode = error instanceof RedisBinaryError ? EXIT_CONFIG : EXIT_TRANSPORT;
    throw new StartError(error instanceof Error ? error.message : String(error), exitCode);
  }
}

async function checkExternal(target: RedisTarget, log: Log): Promise<void> {
  const redis = connect(target, "commands");
  const reason = reasonOf(redis, target);
  try {
    const { refused, warnings } = await checkServer(redis);
    for (const warning of warnings) log.warn(`Redis: ${warning}`);
    if (refused.length > 0) throw new StartError(`Redis: ${refused.join("; ")}`, EXIT_CONFIG);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `Redis at ERRAND_REDIS_URL does not respond (${reason(error)}); check that it is running and the URL is correct`,
      EXIT_TRANSPORT,
    );
  } finally {
    redis.disconnect();
  }
}

async function start(
  config: Config,
  storage: Storage,
  operatorToken: string,
  dataDir: string,
  log: Log,
): Promise<Gateway> {
  const { embedded, target } = storage;
  try {
    return await startGateway({
      redis: target,
      host: config.ERRAND_HOST,
      port: config.ERRAND_PORT,
      operatorToken,
      shards: config.ERRAND_SHARDS,
      retentionMs: config.ERRAND_RETENTION_SECONDS * 1000,
      maxBodyBytes: config.ERRAND_MAX_BODY_BYTES,
      delegatorPercent: config.ERRAND_DELEGATOR_PERCENT,
      callbackAllow: config.ERRAND_CALLBACK_ALLOW,
      publicUrl: config.ERRAND_PUBLIC_URL,
      cardSigningKey: config.ERRAND_CARD_SIGNING_KEY,
      // Browsers behind a proxy send the public URL as the origin.
      allowedOrigins: config.ERRAND_ALLOWED_ORIGINS.concat(config.ERRAND_PUBLIC_URL ?? []),
      log,
      // Another process may have started the embedded Redis. If that process died, this one starts Redis again.
      onRedisLost: () => {
        setTimeout(() => {
          embedded
            ?.ensure()
            .catch((error: unknown) => log.debug({ err: String(error) }, "Redis is not back yet"));
        }, OWNER_FIRST_MS).unref();
      },
    });
  } catch (error) {
    if (error instanceof LayoutError) throw new StartError(error.message, EXIT_CONFIG);
    await refuseAddress(error, config, dataDir);
    throw error;
  }
}

/** Checks the most likely reason for a failed start before anything is started. */
async function checkAddress(config: Config, dataDir: string): Promise<void> {
  if (config.ERRAND_PORT === 0) return;
  try {
    await new Promise<void>((resolve, reject) => {
      const server = createServer((socket) => socket.destroy());
      server.once("error", reject);
      server.listen(config.ERRAND_PORT, config.ERRAND_HOST, () => server.close(() => resolve()));
    });
  } catch (error) {
    await refuseAddress(error, config, dataDir);
    throw error;
  }
}

/** Throws a {@link StartError} if the error says that the gateway cannot listen on the address. */
async function refuseAddress(error: unknown, config: Config, dataDir: string): Promise<void> {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!CANNOT_LISTEN.includes(code)) return;
  const other = code === "EADDRINUSE" ? await findRunningGateway(dataDir) : null;
  if (other?.port === config.ERRAND_PORT) {
    throw new StartError(
      `a broker is already running on ${dataDir} at ${other.url} (process ${other.pid}); use it, stop it, or set ERRAND_PORT to start another one (0 picks a free port)`,
      EXIT_CONFIG,
    );
  }
  const address = `${config.ERRAND_HOST}:${config.ERRAND_PORT}`;
  throw new StartError(
    `cannot listen on ${address} (${code}); free that address, or set ERRAND_HOST and ERRAND_PORT (0 picks a free port)`,
    EXIT_CONFIG,
  );
}

/** The operator token, created at the first start. Anyone who can read the data directory can act as the operator. */
async function operatorTokenIn(dataDir: string): Promise<string> {
  const path = join(dataDir, "operator-token");
  if (!(await stat(path).catch(() => null))) {
    // A crash half-way must not leave an empty file, so the file is linked when it is complete.
    const draft = `${path}.${process.pid}`;
    await writeFile(draft, `errand_operator_${randomId(52)}\n`, { mode: 0o600 });
    await link(draft, path).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
    await rm(draft, { force: true });
  }
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
  const token = (await readFile(path, "utf8")).trim();
  if (token.length < 16)
    throw new StartError(
      `${path} contains no valid token; delete it, and the next start creates one`,
      EXIT_CONFIG,
    );
  return token;
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

/** Aborts on the first SIGINT, SIGTERM or SIGHUP. A second one, more than a second later, ends the process at once. */
function stopSignal(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  let firstAt = 0;
  const stop = () => {
    const now = Date.now();
    // npm and the terminal may each send a signal for one Ctrl-C.
    if (firstAt !== 0 && now - firstAt > 1_000) process.exit(130);
    if (firstAt === 0) firstAt = now;
    controller.abort();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of signals) process.on(name, stop);
  return {
    signal: controller.signal,
    release: () => {
      for (const name of signals) process.off(name, stop);
    },
  };
}
