/** An agent as the store reads it from its hash, and the settings that a change writes. */
import { isDeepStrictEqual } from "node:util";
import { type AgentSpec, agentSpecSchema } from "../../schema/agent.ts";
import { agentNotifySchema } from "../../schema/notice.ts";
import { areFor, type DeliveryCredentials } from "./delivery-credentials.ts";

export interface StoredAgent {
  readonly name: string;
  readonly spec: AgentSpec;
  readonly paused: boolean;
  /** Whether there are credentials for its A2A server. */
  readonly credentials_set: boolean;
  /** Counts the changes of its settings and of `paused`. */
  readonly version: number;
  readonly created_at: number;
  readonly updated_at: number;
}

export interface Counts {
  readonly waiting: number;
  readonly delayed: number;
  readonly working: number;
  readonly interrupted: number;
  readonly awaiting: number;
}

/** The settings that a change writes. */
export interface Settings {
  readonly spec: AgentSpec;
  readonly credentials: DeliveryCredentials | null;
}

/** Identifies one state of an agent's settings; an agent that is created again has new tags. */
export const tagOf = (agent: Pick<StoredAgent, "created_at" | "version">): string =>
  `${agent.created_at}-${agent.version}`;

/** Without newer settings that have their default: a gateway of version 0.1.0 can read no agent that has them. */
export const docOf = ({
  risks,
  notify,
  tree_reads,
  votes,
  delegator_weights,
  priority_ageing_seconds,
  serial_by,
  sticky_seconds,
  budgets,
  ...spec
}: AgentSpec): string =>
  JSON.stringify({
    ...spec,
    ...(risks.length > 0 && { risks }),
    ...(!isDeepStrictEqual(notify, agentNotifySchema.parse({})) && { notify }),
    ...(tree_reads !== "nodes" && { tree_reads }),
    ...(votes !== null && { votes }),
    ...(Object.keys(delegator_weights).length > 0 && { delegator_weights }),
    ...(priority_ageing_seconds !== null && { priority_ageing_seconds }),
    ...(serial_by !== null && { serial_by }),
    ...(sticky_seconds !== null && { sticky_seconds }),
    ...(budgets !== null && { budgets }),
  });

type Fields = { readonly doc: string } & {
  readonly [field in "paused" | "version" | "created_at" | "updated_at" | "credentials_for"]?:
    | string
    | undefined;
};

export function toStored(name: string, fields: Fields): StoredAgent {
  const spec = agentSpecSchema.parse(JSON.parse(fields.doc));
  return {
    name,
    spec,
    paused: fields.paused === "1",
    credentials_set: areFor(fields.credentials_for ?? "", spec.delivery),
    version: Number(fields.version ?? 0),
    created_at: Number(fields.created_at),
    updated_at: Number(fields.updated_at),
  };
}
