/** The rights of a principal to see and answer, so that the CLI offers nothing that the broker would refuse. */
import type { Delegation } from "../schema/delegation.ts";

/** The states of a delegation with an open question. */
export const QUESTION_STATES = ["input_required", "auth_required"] as const;

/** Whether the principal may answer the questions of all delegations. */
export const answersAll = (principal: string): boolean => /^(?:operator$|approver:)/.test(principal);

export const mayAnswer = (principal: string, { delegator }: Pick<Delegation, "delegator">): boolean =>
  answersAll(principal) || delegator === principal;

/** Whether the principal may see the workers and the queue of this agent. */
export const seesFigures = (principal: string, agent: string): boolean =>
  /^(?:operator$|approver:|viewer:)/.test(principal) || principal === `agent:${agent}`;
