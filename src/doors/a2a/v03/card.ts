/** A 1.0 card in the form of A2A 0.3. Unsigned, because a signature covers only one form. */
import type { AgentCard, AgentExtension } from "@a2a-js/sdk";

type Schemes = Record<string, { type: "http"; scheme: string; description?: string }>;

interface SkillV03 {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
}

export interface CardV03 {
  readonly protocolVersion: string;
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly url: string;
  readonly preferredTransport: string;
  readonly additionalInterfaces: readonly { readonly url: string; readonly transport: string }[];
  readonly capabilities: {
    readonly streaming: boolean | undefined;
    readonly pushNotifications: boolean | undefined;
    readonly extensions: readonly AgentExtension[];
  };
  readonly supportsAuthenticatedExtendedCard: boolean | undefined;
  readonly securitySchemes: Schemes;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly SkillV03[];
}

export function toCardV03(card: AgentCard): CardV03 {
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
