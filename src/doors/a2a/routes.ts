/** A2A routes: every agent is an A2A server under its name, even behind a NAT. */
import type { Broker } from "../../engine/broker.ts";
import { publicPath } from "../http/links.ts";
import type { Mount } from "../http/mount.ts";
import { rest } from "./bindings/rest.ts";
import { methodsAt, REST_METHODS } from "./bindings/rest-routes.ts";
import { rpc } from "./bindings/rpc.ts";
import { KeptCards } from "./cards/kept-cards.ts";
import { servePublicCard } from "./cards/public-card.ts";
import type { CardSigner } from "./cards/signing.ts";
import { SUPPORTED } from "./service-parameters.ts";

export function a2aRoutes(broker: Broker, signer: CardSigner | null): readonly Mount[] {
  const { log } = broker;
  const cards = new KeptCards();
  return [
    // Clients of A2A 0.2 read the second one.
    ...["agent-card.json", "agent.json"].map((file) => ({
      methods: ["GET"],
      path: `/a2a/:agent/.well-known/${file}`,
      handle: (incoming: Parameters<Mount["handle"]>[0]) => servePublicCard(incoming, broker, signer, cards),
    })),
    ...SUPPORTED.map((version) => ({
      methods: ["GET"],
      path: `/a2a/:agent/cards/${version}.json`,
      handle: (incoming: Parameters<Mount["handle"]>[0]) =>
        servePublicCard(incoming, broker, signer, cards, version),
    })),
    // Some clients append a slash.
    ...["/a2a/:agent/rpc", "/a2a/:agent/rpc/"].map((path) => ({
      methods: ["POST"],
      path,
      handle: (incoming: Parameters<Mount["handle"]>[0]) => rpc(incoming, signer, log),
    })),
    {
      methods: REST_METHODS,
      path: "/a2a/:agent/rest/*",
      methodsAt: (path) => methodsAt(path.split("/").slice(4).join("/")),
      handle: (incoming) => rest(incoming, signer, log),
    },
  ];
}

/** For a path below an agent's A2A server that does not exist: the addresses that do. Undefined for any other path. */
export function a2aAddresses(publicUrl: string, path: string): string | undefined {
  const [, agent] = /^\/a2a\/([^/]+)(?:\/|$)/.exec(path) ?? [];
  if (agent === undefined) return undefined;
  // A client resolves the path of the card against its base URL, and drops the last segment if no slash follows.
  if (agent === ".well-known")
    return `Give the client a base URL that ends with a slash: ${publicPath(publicUrl, "/a2a/")}AGENT/ with the agent's name. Without it, the name is dropped.`;
  const base = publicPath(publicUrl, `/a2a/${agent}`);
  return `Read the agent card at ${base}/.well-known/agent-card.json. JSON-RPC is POST ${base}/rpc, HTTP+JSON is below ${base}/rest/.`;
}
