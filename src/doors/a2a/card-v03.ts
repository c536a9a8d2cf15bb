/** A card in the form of A2A 0.3, from that of 1.0. Limit: unsigned: a signature stands for one form alone. */
import type { AgentCard } from "@a2a-js/sdk";

type Schemes = Record<string, { type: "http"; scheme: string; description?: string }>;

export function cardV03(card: AgentCard) {
  const [first, ...others] = card.supportedInterfaces.filter(
    ({ protocolVersion }) => protocolVersion === "0.3",
  );
  const securitySchemes: Schemes = {};
  for (const [name, { scheme }] of Object.entries(card.securitySchemes)) {
    if (scheme?.$case !== "httpAuthSecurityScheme") continue;
    const { description, scheme: kind } = scheme.value;
    securitySchemes[name] = { type: "http", scheme: kind, ...(description !== "" && { description }) };
  }
  const { streaming, pushNotifications, extensions = [], extendedAgentCard } = card.capabilities ?? {};
  return {
    protocolVersion: "0.3.0",
    name: card.name,
    description: card.description,
    version: card.version,
    url: first?.url ?? "",
    preferredTransport: first?.protocolBinding ?? "",
    additionalInterfaces: [first, ...others].flatMap((one) =>
      one ? [{ url: one.url, transport: one.protocolBinding }] : [],
    ),
    capabilities: { streaming, pushNotifications, extensions },
    supportsAuthenticatedExtendedCard: extendedAgentCard,
    securitySchemes,
    security: card.securityRequirements.map(({ schemes }) =>
      Object.fromEntries(Object.entries(schemes).map(([name, { list }]) => [name, list])),
    ),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(({ id, name, description, tags, examples, inputModes, outputModes }) => ({
      id,
      name,
      description,
      tags,
      ...(examples.length > 0 && { examples }),
      ...(inputModes.length > 0 && { inputModes }),
      ...(outputModes.length > 0 && { outputModes }),
    })),
  };
}
