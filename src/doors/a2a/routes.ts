/**
 * The A2A door: every agent is an A2A server under its name, however far behind a NAT it sits. Limit: no rules of its
 * own; what it does is done by the engine's verbs.
 */
import type { Broker } from "../../engine/broker.ts";
import type { Mount } from "../http/mount.ts";
import { rest } from "./bindings/rest.ts";
import { rpc } from "./bindings/rpc.ts";
import { published } from "./cards/public-card.ts";
import type { Signer } from "./cards/signing.ts";

export function a2aRoutes(broker: Broker, signer: Signer | null): readonly Mount[] {
  const { log } = broker;
  return [
    {
      methods: ["GET"],
      path: "/a2a/:agent/.well-known/agent-card.json",
      handle: (request) => published(request, broker, signer),
    },
    // Some clients add a slash of their own.
    ...["/a2a/:agent/rpc", "/a2a/:agent/rpc/"].map((path) => ({
      methods: ["POST"],
      path,
      handle: (request: Parameters<Mount["handle"]>[0]) => rpc(request, signer, log),
    })),
    {
      methods: ["GET", "POST", "DELETE"],
      path: "/a2a/:agent/rest/*",
      handle: (request) => rest(request, signer, log),
    },
  ];
}
