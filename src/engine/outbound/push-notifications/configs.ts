/**
 * Creates, reads and deletes the push notification configs of a delegation, for its delegator and the operator. Another
 * principal gets `forbidden` if it may see the delegation, and otherwise `not_found`.
 */
import { createHash } from "node:crypto";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import { isTerminal } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import type {
  PushConfig,
  PushConfigInput,
  PushVersion,
  StoredPushConfig,
} from "../../../schema/push-config.ts";
import type { Principal } from "../../access/access.ts";
import type { Broker } from "../../broker.ts";
import { read } from "../../delegations/read.ts";
import { refusal } from "../../errors.ts";
import { queuePushes } from "./deliver.ts";
import { configs, deleteConfig } from "./delivery-state.ts";

const PAGE = 50;

async function readOwned(broker: Broker, principal: Principal, id: string): Promise<StoredDelegation> {
  const record = await read(broker, principal, id);
  if (principal.kind === "operator" || principal.text === record.get("delegator")) return record;
  throw new ErrandError("forbidden", "Only the delegator and the operator may manage push configs.", {
    delegation_id: id,
    delegation_valid: !record.finished,
  });
}

/** Completes a config for the delegation that it is stored with. */
export type MakePushConfig = (delegation_id: string) => StoredPushConfig;

/** The id is derived from the URL, so a retried create is idempotent; in 0.3 a delegation has a single config. */
function defaultId(delegation_id: string, url: string, version: PushVersion): string {
  if (version === "0.3") return delegation_id;
  return `psh_${createHash("sha256").update(url).digest("base64url").slice(0, 22)}`;
}

/** Throws `invalid_request` for an address that may not be called; `path` is its field in the request. */
export function pushConfigMaker(
  broker: Broker,
  input: PushConfigInput,
  version: PushVersion,
  path = "url",
): MakePushConfig {
  broker.egress.requireCallable(input.url, path);
  return (id) => ({ ...input, id: input.id ?? defaultId(id, input.url, version), version });
}

/** The parameters of the move that creates it. */
export const pushParams = (push: StoredPushConfig): { push: string; push_config: string } => ({
  push: push.id,
  push_config: JSON.stringify(push),
});

/** The config without its credentials, which only the delegator may read. */
function shown(
  principal: Principal,
  record: StoredDelegation,
  { version: _kept, ...push }: StoredPushConfig,
): PushConfig {
  if (principal.text === record.get("delegator")) return push;
  const { token: _token, authentication, ...open } = push;
  return { ...open, ...(authentication && { authentication: { scheme: authentication.scheme } }) };
}

/**
 * From now on the receiver gets every event; for a finished delegation, the last one. A config that replaces another
 * continues where that one was.
 */
export async function createPushConfig(
  broker: Broker,
  principal: Principal,
  id: string,
  input: PushConfigInput,
  version: PushVersion = "1.0",
  path?: string,
): Promise<PushConfig> {
  const record = await readOwned(broker, principal, id);
  const push = pushConfigMaker(broker, input, version, path)(id);
  const max_kept = broker.memory.maxKeptBytes(principal);
  const { outcome } = await broker.writer.move({
    move: "push",
    id,
    params: { ...pushParams(push), max_kept },
  });
  if (outcome.kind !== "ok") throw refusal(outcome, id);
  // The next event starts the delivery; a finished delegation has none, so it is started here.
  if (isTerminal(outcome.state)) await queuePushes(broker, id);
  return shown(principal, record, push);
}

export interface PushConfigPage {
  readonly pushes: readonly PushConfig[];
  /** Cursor of the next page; null: there is none. */
  readonly next_cursor: string | null;
}

/** Ordered by id. */
export async function listPushConfigs(
  broker: Broker,
  principal: Principal,
  id: string,
  {
    limit = PAGE,
    cursor,
  }: { readonly limit?: number | undefined; readonly cursor?: string | undefined } = {},
): Promise<PushConfigPage> {
  const record = await readOwned(broker, principal, id);
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString("utf8");
  const rest = (await configs(broker, id)).filter((one) => one.id > after);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const next_cursor = last && rest.length > page.length ? Buffer.from(last.id).toString("base64url") : null;
  return { pushes: page.map((one) => shown(principal, record, one)), next_cursor };
}

/** Deleting a config that does not exist is no error. */
export async function deletePushConfig(
  broker: Broker,
  principal: Principal,
  id: string,
  push: string,
): Promise<void> {
  await readOwned(broker, principal, id);
  await deleteConfig(broker, id, push);
}
