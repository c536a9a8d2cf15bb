/** Explains failed starts with a known cause: the address is in use, or the data has another layout. */
import { createServer } from "node:net";
import { type Config, EXIT_CONFIG, type Flags } from "../config.ts";
import { StoreSetupError } from "../engine/files/store.ts";
import { isUnavailable } from "../redis/errors.ts";
import { LayoutError } from "../redis/layout.ts";
import { findRunningGateway } from "./announcement.ts";

/** Why `errand serve` ends: a known cause, reported without a stack trace. */
export class ServeError extends Error {
  override readonly name = "ServeError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const EXIT_TRANSPORT = 75;
const CANNOT_LISTEN = ["EADDRINUSE", "EACCES", "EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN"];

/** Returns a {@link ServeError} if the cause is known, otherwise the error itself. */
export async function startFailure(
  error: unknown,
  config: Config,
  dataDir: string,
  flags: Flags = {},
): Promise<unknown> {
  if (error instanceof LayoutError || error instanceof StoreSetupError)
    return new ServeError(error.message, EXIT_CONFIG);
  const refused = await refuseAddress(error, config, dataDir, flags).catch((reason: unknown) => reason);
  if (refused !== undefined) return refused;
  const isOfRedis = error instanceof Error && isUnavailable(error) && !isOfListener(error);
  if (!isOfRedis) return error;
  return new ServeError(
    `Redis is not available: ${error.message.replace(/\.$/, "")}. Check that it runs, then start the broker again`,
    EXIT_TRANSPORT,
  );
}

const isOfListener = (error: Error): boolean => "syscall" in error && error.syscall === "listen";

/** Checks the most likely reason for a failed start before anything is started. */
export async function checkAddress(config: Config, dataDir: string, flags: Flags = {}): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      const server = createServer((socket) => socket.destroy());
      server.once("error", reject);
      server.listen(config.ERRAND_PORT, config.ERRAND_HOST, () => server.close(() => resolve()));
    });
  } catch (error) {
    await refuseAddress(error, config, dataDir, flags);
    throw error;
  }
}

/** Throws a {@link ServeError} if the error says that the gateway cannot listen on the address. */
async function refuseAddress(
  error: unknown,
  config: Config,
  dataDir: string,
  flags: Flags = {},
): Promise<void> {
  const {
    ERRAND_HOST: hostName = "ERRAND_HOST",
    ERRAND_PORT: portName = "ERRAND_PORT",
    ERRAND_DATA_DIR: dataDirName = "ERRAND_DATA_DIR",
  } = flags;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!CANNOT_LISTEN.includes(code)) return;
  const other = code === "EADDRINUSE" ? await findRunningGateway(dataDir) : null;
  if (other?.port === config.ERRAND_PORT) {
    throw new ServeError(
      `a broker is already running on ${dataDir} at ${other.url} (process ${other.pid}); use it, or stop it. For a separate broker, set ${portName} (0 picks a free port) and ${dataDirName}; with ${portName} alone, this one would be one more gateway of the same broker`,
      EXIT_CONFIG,
    );
  }
  const { ERRAND_HOST: host, ERRAND_PORT: port } = config;
  const remedies: Readonly<Record<string, string>> = {
    EACCES: `this user may not listen on port ${port}; set ${portName} to one above 1023`,
    EADDRNOTAVAIL: `this machine does not have that address; set ${hostName} to one that it has, or to 0.0.0.0 for all`,
    ENOTFOUND: `that name has no address; set ${hostName} to an address of this machine, or to 0.0.0.0 for all`,
    EAI_AGAIN: `that name cannot be resolved now; set ${hostName} to an address of this machine`,
  };
  const remedy =
    remedies[code] ?? `free that address, or set ${hostName} and ${portName} (0 picks a free port)`;
  throw new ServeError(`cannot listen on ${host}:${port} (${code}): ${remedy}`, EXIT_CONFIG);
}
