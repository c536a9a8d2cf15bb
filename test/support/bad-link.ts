/**
 * A server between a gateway and its Redis that misbehaves when asked to. Limit: it knows bytes, not commands; a
 * connection that lost bytes never works again, as one whose other end forgot it.
 */
import { createConnection, createServer, type Socket } from "node:net";

/**
 * `refuse`: nobody listens, what was open is reset · `hold`: bytes stay on the way, in both directions, until healed ·
 * `swallow`: bytes vanish, the connection stays open · `swallow-answers`: the requests arrive, the answers vanish ·
 * `delay`: answers come late.
 */
export type Fault = "refuse" | "hold" | "swallow" | "swallow-answers" | "delay";

export interface BadLink {
  readonly port: number;
  readonly fault: (kind: Fault) => Promise<void>;
  readonly heal: () => Promise<void>;
  /** Resets what is open. */
  readonly cut: () => void;
  /** Where new connections lead; what is open stays where it is, as behind an address that moved. */
  readonly lead: (socketPath: string) => void;
  /** Resets each connection in the middle of its next answer. */
  readonly tear: () => void;
  readonly close: () => void;
}

interface Link {
  readonly near: Socket;
  readonly far: Socket;
  lost: Fault | null;
  torn: boolean;
  /** Answers that come late, oldest first. */
  readonly late: { readonly at: number; readonly bytes: Buffer }[];
}

/** Between 127.0.0.1 and the unix socket. `delayMs` is for `delay`. */
export async function openBadLink(socketPath: string, delayMs = 300): Promise<BadLink> {
  const links = new Set<Link>();
  let fault: Fault | null = null;
  let target = socketPath;

  const apply = (link: Link) => {
    if (fault === "hold") {
      link.near.pause();
      link.far.pause();
    } else if (fault !== null && fault !== "delay") {
      link.lost ??= fault;
    }
  };
  const answer = (link: Link, bytes: Buffer) => {
    if (link.lost !== null) return;
    if (link.torn && bytes.length > 1) {
      link.lost = "swallow";
      link.near.write(bytes.subarray(0, bytes.length >> 1), () => link.near.resetAndDestroy());
    } else if (fault === "delay" || link.late.length > 0) {
      link.late.push({ at: performance.now() + (fault === "delay" ? delayMs : 0), bytes });
      if (link.late.length === 1) deliverLate(link);
    } else {
      link.near.write(bytes);
    }
  };
  // One after the other: bytes that come after the fault must not overtake those that are late.
  const deliverLate = (link: Link) => {
    const [first] = link.late;
    if (first === undefined) return;
    setTimeout(
      () => {
        link.late.shift();
        if (link.lost === null) link.near.write(first.bytes);
        deliverLate(link);
      },
      Math.max(0, first.at - performance.now()),
    );
  };
  // Half-open: a lost connection does not even answer a goodbye.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = createConnection({ path: target, allowHalfOpen: true });
    const link: Link = { near, far, lost: null, torn: false, late: [] };
    links.add(link);
    const cut = () => {
      links.delete(link);
      near.destroy();
      far.destroy();
    };
    near.on("data", (bytes) => link.lost !== "swallow" && far.write(bytes));
    far.on("data", (bytes) => answer(link, bytes));
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
    lead(path) {
      target = path;
    },
    tear() {
      for (const link of links) link.torn = true;
    },
    close() {
      server.close();
      for (const { near, far } of links) {
        near.destroy();
        far.destroy();
      }
    },
  };
}
