/** Agent cards from agents' records. The only security scheme is the broker's bearer tokens. */
import { AgentCard, type AgentSkill } from "@a2a-js/sdk";
import type { Principal } from "../../../engine/access/access.ts";
import type { StoredAgent } from "../../../engine/agents/stored-agent.ts";
import type { Broker } from "../../../engine/broker.ts";
import { camelMembers } from "../camel-case.ts";
import { EXTENSION } from "../service-parameters.ts";

/** Texts for the cards of agents that have none, because the codec would omit an empty member. */
const DEFAULTS = {
  description: (name: string) => `The agent ${name}.`,
  skill: (name: string, description: string) => ({
    id: "task",
    name: "Task",
    description: description || `Accepts tasks for ${name} in natural language.`,
    tags: ["task"],
  }),
};
const DEFAULT_MODES = ["text/plain", "application/json"];
/** Newest first: a client uses the first one that it supports. */
const INTERFACES = [
  { path: "rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
  { path: "rest", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
  { path: "rpc", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
  { path: "rest", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
];
const STREAMING = true;
const PUSH_NOTIFICATIONS = true;

type Params = Readonly<Record<string, unknown>>;

function skillsOf({ name, spec }: StoredAgent): unknown[] {
  if (spec.skills.length === 0) return [DEFAULTS.skill(name, spec.description)];
  return spec.skills.map((skill) => ({
    ...skill,
    description: skill.description || skill.name,
    tags: skill.tags.length > 0 ? skill.tags : ["task"],
  }));
}

/** The default modes and those of the skills. */
function modesOf(skills: readonly AgentSkill[], of: "inputModes" | "outputModes"): string[] {
  return [...new Set([...DEFAULT_MODES, ...skills.flatMap((skill) => skill[of])])];
}

/** `url` is the agent's, with a trailing slash. */
function toCard(agent: StoredAgent, url: string, params?: Params): AgentCard {
  const { name, spec } = agent;
  const card = AgentCard.fromJSON({
    name,
    description: spec.description || DEFAULTS.description(name),
    version: spec.version || "1",
    supportedInterfaces: INTERFACES.map(({ path, ...rest }) => ({ url: `${url}${path}`, ...rest })),
    capabilities: {
      streaming: STREAMING,
      pushNotifications: PUSH_NOTIFICATIONS,
      extendedAgentCard: true,
      extensions: [
        {
          uri: EXTENSION,
          description:
            "Questions in a task's metadata, how to answer them, the settings of a new task, the Idempotency-Key header, and, in the extended card, whether workers poll.",
          ...(params && { params: camelMembers(params) }),
        },
      ],
    },
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { scheme: "Bearer", description: "A token of the broker." } },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    skills: skillsOf(agent),
  });
  return {
    ...card,
    defaultInputModes: modesOf(card.skills, "inputModes"),
    defaultOutputModes: modesOf(card.skills, "outputModes"),
  };
}

export const publicCard = (agent: StoredAgent, url: string): AgentCard => toCard(agent, url);

/**
 * The card for authenticated callers, with presence and counts; the agent itself and the operator also see its
 * settings. The public card has none of this: presence shows strangers when somebody works, and that card is cached.
 */
export async function extendedCard(
  broker: Broker,
  principal: Principal,
  agent: StoredAgent,
  url: string,
): Promise<AgentCard> {
  const { name, spec, paused } = agent;
  const isOwn = principal.kind === "operator" || (principal.kind === "agent" && principal.name === name);
  const [presence, counts] = await Promise.all([broker.presence.of(name), broker.agents.counts(name)]);
  const { accepts_from, limits, backoff } = spec;
  return toCard(agent, url, { presence, counts, paused, ...(isOwn && { accepts_from, limits, backoff }) });
}
