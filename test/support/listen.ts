/** Lets a server of a test listen on a free port of this machine, until the test ends. */
import type { Server } from "node:http";
import { onTestFinished } from "vitest";

/** Resolves with the port. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
