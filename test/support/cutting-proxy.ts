/** A proxy before a server that cuts connections in the middle of a transfer. */
import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface CuttingProxy {
  readonly port: number;
  /** How many connections were cut. */
  readonly cuts: () => number;
  /** Cuts the next `count` connections of which so many bytes passed, in both directions together. */
  readonly cut: (count: number, afterBytes: number) => void;
}

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  let cuts = 0;
  let planned = { count: 0, afterBytes: 0 };
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = createConnection(target, "127.0.0.1");
    let passed = 0;
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.on("data", (chunk) => {
        passed += chunk.length;
        if (planned.count > 0 && passed > planned.afterBytes) {
          planned.count -= 1;
          cuts += 1;
          near.resetAndDestroy();
        } else if (!other.write(chunk)) {
          one.pause();
          other.once("drain", () => one.resume());
        }
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const one of open) one.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    cuts: () => cuts,
    cut: (count, afterBytes) => {
      planned = { count, afterBytes };
    },
  };
}
