/**
 * A proxy between a gateway and its Redis that misbehaves on demand. Limit: it knows bytes, not commands; a
 * connection that lost bytes stays broken, as if its other end had forgotten it.
 */
import { createConnection, createServer, type Socket } from "node:net";

/**
 * `refuse`: nobody listens, open connections are reset · `hold`: bytes are delayed in both directions until the fault
 * ends · `swallow`: bytes vanish, connections stay open · `swallow-answers`: requests arrive, answers vanish ·
 * `delay`: answers arrive late.
 */
export type Fault = "refuse" | "hold" | "swallow" | "swallow-answers" | "delay";

export interface BadLink {
  readonly port: number;
  readonly fault: (kind: Fault) => Promise<void>;
  readonly heal: () => Promise<void>;
  /** Resets all open connections. */
  readonly cut: () => void;
  /** Sets the target of new connections; open ones keep theirs, as behind an address that moved. */
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
  /** Delayed answers, oldest first. */
  readonly late: { readonly at: number; readonly bytes: Buffer }[];
}

/** A link between 127.0.0.1 and the unix socket. `delayMs` is for `delay`. */
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
  // In order: bytes that arrive after the fault must not overtake delayed ones.
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
  // Half-open: a lost connection does not even answer a close.
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
