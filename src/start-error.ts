/** Explains failed starts with a known cause: the address is in use, or the data has another layout. */
import { createServer } from "node:net";
import { findRunningGateway } from "./announcement.ts";
import { type Config, EXIT_CONFIG } from "./config.ts";
import { isUnavailable } from "./redis/errors.ts";
import { LayoutError } from "./redis/layout.ts";
import { ServeError } from "./serve-error.ts";

export const EXIT_TRANSPORT = 75;
const CANNOT_LISTEN = ["EADDRINUSE", "EACCES", "EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN"];

/** Returns a {@link ServeError} if the cause is known, otherwise the error itself. */
export async function startFailure(error: unknown, config: Config, dataDir: string): Promise<unknown> {
  if (error instanceof LayoutError) return new ServeError(error.message, EXIT_CONFIG);
  const refused = await refuseAddress(error, config, dataDir).catch((reason: unknown) => reason);
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
export async function checkAddress(config: Config, dataDir: string): Promise<void> {
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

/** Throws a {@link ServeError} if the error says that the gateway cannot listen on the address. */
async function refuseAddress(error: unknown, config: Config, dataDir: string): Promise<void> {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!CANNOT_LISTEN.includes(code)) return;
  const other = code === "EADDRINUSE" ? await findRunningGateway(dataDir) : null;
  if (other?.port === config.ERRAND_PORT) {
    throw new ServeError(
      `a broker is already running on ${dataDir} at ${other.url} (process ${other.pid}); use it, stop it, or set ERRAND_PORT to start another one (0 picks a free port)`,
      EXIT_CONFIG,
    );
  }
  const address = `${config.ERRAND_HOST}:${config.ERRAND_PORT}`;
  throw new ServeError(
    `cannot listen on ${address} (${code}); free that address, or set ERRAND_HOST and ERRAND_PORT (0 picks a free port)`,
    EXIT_CONFIG,
  );
}
