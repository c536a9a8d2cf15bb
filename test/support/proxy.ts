/**
 * A server between a gateway and its Redis that misbehaves when told to. Limit: it knows bytes, not commands; a
 * connection that lost bytes never works again, as one whose other end forgot it.
 */
import { createConnection, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/**
 * `refuse`: nobody listens, what was open is reset · `hold`: bytes stay on the way, in both directions, until healed ·
 * `swallow`: bytes vanish, the connection stays open · `swallow-answers`: the requests arrive, the answers vanish.
 */
export type Fault = "refuse" | "hold" | "swallow" | "swallow-answers";

export interface Proxy {
  readonly port: number;
  readonly fault: (kind: Fault) => Promise<void>;
  readonly heal: () => Promise<void>;
  /** Resets what is open. */
  readonly cut: () => void;
}

interface Link {
  readonly near: Socket;
  readonly far: Socket;
  lost: Fault | null;
}

/** Between 127.0.0.1 and the unix socket. */
export async function startProxy(socketPath: string): Promise<Proxy> {
  const links = new Set<Link>();
  let fault: Fault | null = null;

  const apply = (link: Link) => {
    if (fault === "hold") {
      link.near.pause();
      link.far.pause();
    } else if (fault !== null) {
      link.lost ??= fault;
    }
  };
  // Half-open: a lost connection does not even answer a goodbye.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = createConnection({ path: socketPath, allowHalfOpen: true });
    const link: Link = { near, far, lost: null };
    links.add(link);
    const cut = () => {
      links.delete(link);
      near.destroy();
      far.destroy();
    };
    near.on("data", (bytes) => link.lost !== "swallow" && far.write(bytes));
    far.on("data", (bytes) => link.lost === null && near.write(bytes));
    near.on("end", () => link.lost === null && far.end());
    far.on("end", () => link.lost === null && near.end());
    near.on("error", cut);
    far.on("error", () => link.lost === null && cut());
    near.on("close", cut);
    far.on("close", () => link.lost === null && cut());
    apply(link);
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
  const reset = () => {
    for (const { near } of links) near.resetAndDestroy();
  };
  await listen(0);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  onTestFinished(() => {
    server.close();
    reset();
  });
  return {
    port,
    async fault(kind) {
      fault = kind;
      if (kind === "refuse") {
        const closed = new Promise((resolve) => server.close(resolve));
        reset();
        await closed;
      }
      for (const link of links) apply(link);
    },
    async heal() {
      const refused = fault === "refuse";
      fault = null;
      if (refused) await listen(port);
      for (const { near, far } of links) {
        near.resume();
        far.resume();
      }
    },
    cut: reset,
  };
}
