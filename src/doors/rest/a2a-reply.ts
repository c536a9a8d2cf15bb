/**
 * Parses the reply of an A2A agent (1.0 or 0.3, in a JSON-RPC response or bare) into an address and an action. Limit: ids
 * are only read; the engine looks them up.
 */

import { bodyHash } from "../../engine/delegations/idempotency.ts";
import { preview } from "../../engine/delegations/preview.ts";
import type { Action, Address } from "../../engine/leases/a2a-reply.ts";
import { parseLeaseId } from "../../redis/shards.ts";
import { type Artifact, type Message, textOf } from "../../schema/a2a.ts";
import { fromA2aState, type KnownA2aState } from "../../schema/a2a-task.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { LIMITS } from "../../schema/limits.ts";
import { delegationIdSchema, leaseIdSchema } from "../../schema/values.ts";
import {
  at,
  isAgentMessage,
  listOf,
  type Members,
  malformed,
  membersOf,
  toArtifact,
  toMessage,
} from "./a2a-objects.ts";

type Reply = Extract<Action, { kind: "reply" }>;
type Progress = Extract<Action, { kind: "progress" }>;
type Interrupt = Extract<Action, { kind: "interrupt" }>;
type Canceled = Extract<Action, { kind: "canceled" }>;

/** The engine's action, with the additions of A2A: chunks of an artifact, artifacts of a task that asks a question. */
export type A2aAction =
  | Reply
  | (Progress & { readonly append?: boolean; readonly last_chunk?: boolean })
  | (Interrupt & { readonly artifacts?: readonly Artifact[] })
  | Canceled;

export interface A2aReply {
  /** Null if the reply names neither a lease nor a delegation. */
  readonly address: Address | null;
  readonly action: A2aAction;
}

/** Metadata into which an agent may have copied the ids of the request. */
interface Place {
  readonly path: string;
  readonly metadata: unknown;
}

interface Parsed {
  readonly action: A2aAction;
  /** In order of precedence. */
  readonly places: readonly Place[];
}

/** Returns the id for a message without one. */
type MakeMessageId = () => string;

export function parseA2aReply(body: unknown): A2aReply {
  // Derived from the content: a repeated reply must not ask a second question.
  const makeMessageId: MakeMessageId = () => `msg_${bodyHash(body).slice(0, 32)}`;
  const members = membersOf(body, "");
  if (members.jsonrpc === undefined && members.result === undefined && members.error === undefined) {
    const { action, places } = fromResult(members, "", makeMessageId);
    return { address: toAddress(undefined, places), action };
  }
  const { id, result, error } = members;
  if (members.jsonrpc !== "2.0") throw malformed("jsonrpc", "must be 2.0");
  if (id !== undefined && typeof id !== "string" && typeof id !== "number") {
    throw malformed("id", "must be a string, a number or null");
  }
  if ((result === undefined) === (error === undefined)) {
    throw malformed("", "a JSON-RPC response has exactly one of result and error");
  }
  const { action, places } =
    error === undefined ? fromResult(membersOf(result, "result"), "result", makeMessageId) : fromError(error);
  return { address: toAddress(id, places), action };
}

/** Drops the `data` of the error: it may contain internals of the agent. */
function fromError(error: unknown): Parsed {
  const { message } = membersOf(error, "error");
  if (typeof message !== "string") throw malformed("error.message", "must be a string");
  return { action: { kind: "reply", state: "failed", ...agentError(message) }, places: [] };
}

/** The same limits as for a reply in our own protocol. */
const ERROR_BYTES = 65_536;
const MAX_ARTIFACTS = LIMITS.artifacts.value;

/** Without a text there is no error here; the engine then writes one. */
function agentError(text: string): Pick<Reply, "error"> {
  if (text === "") return {};
  return { error: { code: "agent_error", message: preview(text, ERROR_BYTES), retryable: false } };
}

/** The members of A2A's response objects, and the `kind` that 0.3 uses instead. */
const SHAPES = {
  message: { kind: "message", read: fromMessage },
  task: { kind: "task", read: fromTask },
  statusUpdate: { kind: "status-update", read: fromTask },
  artifactUpdate: { kind: "artifact-update", read: fromArtifact },
} as const;

function fromResult(result: Members, path: string, makeMessageId: MakeMessageId): Parsed {
  const { kind } = result;
  if (kind !== undefined) {
    const shape = Object.values(SHAPES).find((one) => one.kind === kind);
    if (!shape) throw malformed(at(path, "kind"), "must be message, task, status-update or artifact-update");
    return shape.read(result, path, makeMessageId);
  }
  const wrapped = Object.entries(SHAPES).filter(([member]) => result[member] !== undefined);
  const [first, second] = wrapped;
  if (second) throw malformed(path, `has both ${first?.[0]} and ${second[0]}`);
  if (first) {
    const [member, { kind: expected, read }] = first;
    const inner = membersOf(result[member], at(path, member));
    if (inner.kind !== undefined && inner.kind !== expected) {
      throw malformed(at(at(path, member), "kind"), `must be ${expected}`);
    }
    return read(inner, at(path, member), makeMessageId);
  }
  // Bare 1.0 objects do not name their type; it follows from members that the others lack.
  if (result.artifact !== undefined) return fromArtifact(result, path);
  if (result.messageId !== undefined && result.status === undefined)
    return fromMessage(result, path, makeMessageId);
  if (["status", "artifacts", "history", "id"].some((member) => result[member] !== undefined)) {
    return fromTask(result, path, makeMessageId);
  }
  if (result.role !== undefined) return fromMessage(result, path, makeMessageId);
  throw malformed(path, "is not a Message, Task or task event of A2A 1.0 or 0.3");
}

function fromMessage(value: Members, path: string, makeMessageId: MakeMessageId): Parsed {
  if (["messageId", "role", "parts", "kind"].every((member) => value[member] === undefined)) {
    throw malformed(path, "is not a Message: it has neither messageId, role nor parts");
  }
  const message = toMessage(value, path, makeMessageId);
  return {
    action: { kind: "reply", state: "completed", message, bare: true },
    places: [{ path, metadata: message.metadata }],
  };
}

/** A Task, or a status event, which looks like a Task without artifacts and history. */
function fromTask(task: Members, path: string, makeMessageId: MakeMessageId): Parsed {
  const statusPath = at(path, "status");
  const status = membersOf(task.status ?? {}, statusPath);
  const known = fromA2aState(status.state);
  if (known === undefined) throw unknownState(status.state, at(statusPath, "state"));
  const messagePath = at(statusPath, "message");
  const statusMessage =
    status.message === undefined ? undefined : toMessage(status.message, messagePath, makeMessageId);
  const artifacts = listOf(task.artifacts, at(path, "artifacts"), toArtifact);
  if (artifacts.length > MAX_ARTIFACTS) throw malformed(at(path, "artifacts"), `at most ${MAX_ARTIFACTS}`);
  const lastMessage = statusMessage ?? lastAgentMessage(task.history, at(path, "history"), makeMessageId);
  return {
    action: toAction(known, statusMessage, lastMessage, artifacts),
    places: [
      { path, metadata: task.metadata },
      { path: messagePath, metadata: statusMessage?.metadata },
    ],
  };
}

/** `lastMessage` is the status's message, or else the agent's last one in the history, which is enough for a reply. */
function toAction(
  known: KnownA2aState,
  statusMessage: Message | undefined,
  lastMessage: Message | undefined,
  artifacts: Artifact[],
): A2aAction {
  const message = statusMessage && { message: statusMessage };
  const output = artifacts.length > 0 && { artifacts };
  switch (known.means) {
    case "progress":
      return { kind: "progress", ...message, ...output };
    case "interrupt": {
      const interrupt = known.state === "input_required" ? "input" : "auth";
      return { kind: "interrupt", interrupt, ...message, ...output };
    }
    case "canceled":
      return { kind: "canceled", ...message };
    case "reply": {
      const error = known.state === "failed" ? agentError(textOf(statusMessage ?? {})) : {};
      return {
        kind: "reply",
        state: known.state,
        ...(lastMessage && { message: lastMessage }),
        ...output,
        ...error,
      };
    }
  }
}

function lastAgentMessage(history: unknown, path: string, makeMessageId: MakeMessageId): Message | undefined {
  const messages = listOf(history, path, (message) => message);
  const index = messages.findLastIndex(isAgentMessage);
  return index < 0 ? undefined : toMessage(messages[index], at(path, index), makeMessageId);
}

function fromArtifact(event: Members, path: string): Parsed {
  const artifact = toArtifact(event.artifact, at(path, "artifact"));
  const append = flag(event.append, at(path, "append"));
  const last_chunk = flag(event.lastChunk, at(path, "lastChunk"));
  return {
    action: { kind: "progress", artifacts: [artifact], append, last_chunk },
    places: [{ path, metadata: event.metadata }],
  };
}

function flag(value: unknown, path: string): boolean {
  if (value !== undefined && typeof value !== "boolean") throw malformed(path, "must be true or false");
  return value ?? false;
}

function unknownState(state: unknown, path: string): ErrandError {
  const reason = state === undefined ? "there is no task state" : "not a task state of A2A";
  return new ErrandError("unknown_task_state", `${path}: ${reason}`, {
    details: { issues: [{ path, reason }] },
  });
}

/** The first lease that the reply names, else the first delegation; all other ids in it must agree. */
function toAddress(id: unknown, places: readonly Place[]): Address | null {
  const leases: string[] = [];
  const delegations: string[] = [];
  if (leaseIdSchema.safeParse(id).success) leases.push(String(id));
  for (const { path, metadata: given } of places) {
    if (given === undefined) continue;
    const where = at(path, "metadata");
    const metadata = membersOf(given, where);
    leases.push(...idIn(metadata, "lease_id", leaseIdSchema, where));
    delegations.push(...idIn(metadata, "delegation_id", delegationIdSchema, where));
  }
  if (delegationIdSchema.safeParse(id).success) delegations.push(String(id));

  const named = [...leases.map((lease) => parseLeaseId(lease).delegationId), ...delegations];
  if (new Set(named).size > 1) throw malformed("", "its ids name different delegations");
  if (new Set(leases).size > 1) throw malformed("", "its ids name different leases");
  const [lease_id] = leases;
  if (lease_id !== undefined) return { by: "lease", lease_id };
  const [delegation_id] = delegations;
  return delegation_id === undefined ? null : { by: "delegation", delegation_id };
}

/** A malformed id is refused, not ignored: a reply without its lease would be matched without fencing. */
function idIn(metadata: Members, member: string, schema: typeof leaseIdSchema, path: string): string[] {
  const value = metadata[member];
  if (value === undefined) return [];
  const { data, error } = readAs(schema, value);
  if (error) throw invalidRequest(error, { whole: "The body", under: at(path, member) });
  return [data];
}
