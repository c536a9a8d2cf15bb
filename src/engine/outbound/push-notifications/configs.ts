/**
 * Push notification configs of a delegation: made, shown and taken away by its delegator or the operator. Limit: whoever
 * sees the delegation otherwise is refused; to whom it does not concern, it does not exist.
 */
import { createHash } from "node:crypto";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import { isTerminal } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import type { Push, PushInput, PushVersion, StoredPush } from "../../../schema/push.ts";
import type { Principal } from "../../access/access.ts";
import type { Broker } from "../../broker.ts";
import { read } from "../../delegations/read.ts";
import { refusal } from "../../errors.ts";
import { queuePushes } from "./deliver.ts";
import { configs, forget } from "./progress.ts";

const PAGE = 50;

async function mine(broker: Broker, principal: Principal, id: string): Promise<StoredDelegation> {
  const record = await read(broker, principal, id);
  if (principal.kind === "operator" || principal.text === record.delegator) return record;
  throw new ErrandError("forbidden", "Only the delegator and the operator may see to push configs.", {
    delegation_id: id,
    delegation_valid: !record.finished,
  });
}

/** What is kept of it with that delegation. */
export type MakePush = (delegation_id: string) => StoredPush;

/**
 * Who sends the same again, for want of an answer, is told once: what is not named is known by its URL, and in 0.3 it is
 * the delegation's one.
 */
function unnamed(delegation_id: string, url: string, version: PushVersion): string {
  if (version === "0.3") return delegation_id;
  return `psh_${createHash("sha256").update(url).digest("base64url").slice(0, 22)}`;
}

/** As it is kept; throws `invalid_request` for an address that may not be called. `path` names it to the caller. */
export function toPush(broker: Broker, input: PushInput, version: PushVersion, path = "url"): MakePush {
  broker.egress.requireCallable(input.url, path);
  return (id) => ({ ...input, id: input.id ?? unnamed(id, input.url, version), version });
}

/** What the move that makes it takes. */
export const pushParams = (push: StoredPush): { push: string; push_config: string } => ({
  push: push.id,
  push_config: JSON.stringify(push),
});

/** To others than the delegator without what it is to be known by. */
function shown(
  principal: Principal,
  record: StoredDelegation,
  { version: _kept, ...push }: StoredPush,
): Push {
  if (principal.text === record.delegator) return push;
  const { token: _token, authentication, ...open } = push;
  return { ...open, ...(authentication && { authentication: { scheme: authentication.scheme } }) };
}

/**
 * From its making on its receiver is told of every event; of a delegation that is over, of its last. One that takes
 * another's place goes on where that one was.
 */
export async function createPush(
  broker: Broker,
  principal: Principal,
  id: string,
  input: PushInput,
  version: PushVersion = "1.0",
  path?: string,
): Promise<Push> {
  const record = await mine(broker, principal, id);
  const push = toPush(broker, input, version, path)(id);
  const most = broker.memory.mostKept(principal);
  const { outcome } = await broker.writer.move({
    move: "push",
    id,
    params: { ...pushParams(push), most },
  });
  if (outcome.kind !== "ok") throw refusal(outcome, id);
  // What a finished one has to tell is told now; of a live one its next event will see to that.
  if (isTerminal(outcome.state)) await queuePushes(broker, id);
  return shown(principal, record, push);
}

/** Throws `not_found` when the delegation has none of that id. */
export async function getPush(broker: Broker, principal: Principal, id: string, push: string): Promise<Push> {
  const record = await mine(broker, principal, id);
  const found = (await configs(broker, id)).find((one) => one.id === push);
  if (!found) throw new ErrandError("not_found", `Delegation ${id} has no push config of that id.`);
  return shown(principal, record, found);
}

export interface PushPage {
  readonly pushes: readonly Push[];
  /** What to go on with; null: that is all. */
  readonly next_cursor: string | null;
}

/** By their ids. */
export async function listPushes(
  broker: Broker,
  principal: Principal,
  id: string,
  {
    limit = PAGE,
    cursor,
  }: { readonly limit?: number | undefined; readonly cursor?: string | undefined } = {},
): Promise<PushPage> {
  const record = await mine(broker, principal, id);
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString("utf8");
  const rest = (await configs(broker, id)).filter((one) => one.id > after);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const next_cursor = last && rest.length > page.length ? Buffer.from(last.id).toString("base64url") : null;
  return { pushes: page.map((one) => shown(principal, record, one)), next_cursor };
}

/** One that is not there is no error: it is gone, as was wanted. */
export async function deletePush(
  broker: Broker,
  principal: Principal,
  id: string,
  push: string,
): Promise<void> {
  await mine(broker, principal, id);
  await forget(broker, id, push);
}
