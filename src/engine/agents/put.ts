/**
 * Creates or changes an agent: replaces all settings, or merges a patch into them. Limit: only the operator may change
 * which server the broker calls, with which credentials, and how risky the agent's actions are.
 */
import { isDeepStrictEqual } from "node:util";
import {
  type AgentPatch,
  type AgentRequest,
  type AgentSpec,
  agentRequestSchema,
  agentSpecSchema,
  type Delivery,
} from "../../schema/agent.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { mergePatch } from "../../schema/merge-patch.ts";
import { type Principal, requireAgent } from "../access/access.ts";
import { requireCurrencies } from "../access/currencies.ts";
import type { Broker } from "../broker.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import { type Conditions, requireConditions } from "./conditions.ts";
import { DeliveryCredentials, sameCredentials } from "./delivery-credentials.ts";
import { auditDetails, type Difference, differenceOf, withCredentials } from "./difference.ts";
import type { Settings, StoredAgent } from "./stored-agent.ts";

export interface Changed extends Difference {
  readonly agent: StoredAgent;
  readonly created: boolean;
}

type CredentialsAre = "same" | "changed" | "reset";

const POLL: Delivery = { mode: "poll" };
const urlOf = (delivery: Delivery): string | undefined =>
  delivery.mode === "push" ? delivery.url : undefined;

/** Creates the agent, or replaces all of its settings. */
export function putAgent(
  broker: AuditWriter & Pick<Broker, "agents" | "egress" | "handoff" | "pushAgents">,
  principal: Principal,
  name: string,
  request: AgentRequest,
  conditions: Conditions = {},
): Promise<Changed> {
  return changeAgent(broker, principal, name, conditions, (before) => {
    if (principal.kind === "operator") return toSettings(request);
    // Only the operator may reset them, so an agent that replaces its settings keeps them.
    const kept = OPERATORS.filter(({ name }) => isDeepStrictEqual(request[name], NEW[name]));
    const known = before?.spec ?? NEW;
    return toSettings({ ...request, ...Object.fromEntries(kept.map(({ name }) => [name, known[name]])) });
  });
}

const NEW = agentSpecSchema.parse({});

/** The settings that only the operator changes, besides `delivery`. */
const OPERATORS = [
  { name: "risks", what: "the risks of" },
  { name: "notify", what: "what is notified of" },
  { name: "votes", what: "who approves for" },
  { name: "budgets", what: "the budgets of" },
] as const satisfies readonly { readonly name: keyof AgentSpec; readonly what: string }[];

/** Merges a patch into the settings of an agent that exists. */
export function patchAgent(
  broker: AuditWriter & Pick<Broker, "agents" | "egress" | "handoff" | "pushAgents">,
  principal: Principal,
  name: string,
  patch: AgentPatch,
  conditions: Conditions = {},
): Promise<Changed> {
  return changeAgent(broker, principal, name, conditions, (before, credentials) => {
    if (!before) throw new ErrandError("agent_unknown", `There is no agent '${name}'.`);
    return merged(before.spec, credentials, patch);
  });
}

/** Credentials are kept unless the patch replaces or removes them, or the new server has another origin. */
function merged(spec: AgentSpec, credentials: DeliveryCredentials | null, patch: AgentPatch): Settings {
  const mode = patch.delivery?.mode ?? spec.delivery.mode;
  // The old mode's members must not be merged into the new mode.
  const base = mode === spec.delivery.mode ? spec : { ...spec, delivery: undefined };
  const settings = toSettings(checked(mergePatch(base, patch)));
  const isKept = patch.delivery?.credentials === undefined && credentials?.areFor(settings.spec.delivery);
  return isKept ? { ...settings, credentials } : settings;
}

function toSettings({ delivery, ...rest }: AgentRequest): Settings {
  if (delivery.mode === "poll") return { spec: { ...rest, delivery }, credentials: null };
  const { credentials, ...push } = delivery;
  return {
    spec: { ...rest, delivery: push },
    credentials: credentials ? new DeliveryCredentials(push.url, credentials) : null,
  };
}

function checked(value: unknown): AgentRequest {
  const parsed = readAs(agentRequestSchema, value);
  if (parsed.success) return parsed.data;
  throw invalidRequest(parsed.error, { where: "body", whole: "The agent" });
}

const operatorOnly = (what: string, setting: string): ErrandError =>
  new ErrandError("forbidden", `Only the operator may change ${what}.`, {
    recovery: `Change other settings with PATCH, or ask the operator to change \`${setting}\`.`,
  });

async function changeAgent(
  broker: AuditWriter & Pick<Broker, "agents" | "egress" | "handoff" | "pushAgents">,
  principal: Principal,
  name: string,
  conditions: Conditions,
  next: (before: StoredAgent | null, credentials: DeliveryCredentials | null) => Settings,
): Promise<Changed> {
  requireAgent(principal, name, "change it");
  let isRedirected = false;
  let credentialsAre: CredentialsAre | undefined;
  let url: string | undefined;
  let after: AgentSpec | undefined;
  const before = await broker.agents.change(name, (current, credentials) => {
    const settings = next(current, credentials);
    const { spec } = settings;
    requireConditions(name, current, conditions);
    url = urlOf(spec.delivery);
    isRedirected = url !== urlOf(current?.spec.delivery ?? POLL);
    const isSame = sameCredentials(credentials, settings.credentials);
    credentialsAre = isSame ? "same" : settings.credentials ? "changed" : "reset";
    if (principal.kind !== "operator") {
      if (isRedirected || !isSame) throw operatorOnly(`how work is delivered to agent '${name}'`, "delivery");
      const known = current?.spec ?? NEW;
      const other = OPERATORS.find((one) => !isDeepStrictEqual(spec[one.name], known[one.name]));
      if (other) throw operatorOnly(`${other.what} agent '${name}'`, other.name);
    }
    requireCurrencies(spec.budgets);
    if (url !== undefined) broker.egress.requireCallable(url, "delivery.url");
    after = spec;
    return settings;
  });
  // Also when an earlier call wrote the change, and its gateway died before it published it.
  const isDelivery = isRedirected || credentialsAre !== "same";
  if (isDelivery || broker.pushAgents.has(name) !== (url !== undefined))
    await broker.pushAgents.publishChange(name);
  // From Redis, because the cache may lack another gateway's change.
  const agent = await broker.agents.read(name);
  if (!agent) throw new ErrandError("agent_unknown", `Agent '${name}' was deleted at the same time.`);
  const spec = after ?? agent.spec;
  const difference = before ? changeOf(before.spec, spec, credentialsAre) : { changed: [], reset: [] };
  const isChanged = difference.changed.length + difference.reset.length > 0;
  if (!before) await audit(broker, principal, "agent.create", name);
  else if (isChanged)
    await audit(broker, principal, "agent.update", name, auditDetails(difference, before.spec, spec));
  // The new settings may allow more work at once, so the polls fetch again.
  if (before && isChanged) broker.handoff.wakeEverywhere(name);
  return { agent, created: before === null, ...difference };
}

function changeOf(before: AgentSpec, after: AgentSpec, credentials: CredentialsAre = "same"): Difference {
  const difference = differenceOf(before, after);
  return credentials === "same" ? difference : withCredentials(difference, credentials);
}
