/**
 * Idempotency keys: the same key and body of a principal always lead to the same delegation.
 * Limit: a key lives until its delegation's record is deleted, and at least 24 h; a refused submit leaves no key.
 *
 * A reservation stores the delegation's id before there is a delegation, so every step can be repeated: each request
 * that finds it submits with that id, and the script creates one record. Its text is `<hash of the body> <id> <mark>`:
 * - no mark: only the request that set the key submits, or submitted, with the id;
 * - `shared`: other requests with the same body submit with it too;
 * - `voiding`: another body is about to use the key; the id is voided first, so that no submit in flight can use it;
 * - `gone <created at>`: the delegation's record was deleted.
 */
import { hash as digest } from "node:crypto";
import { isRecordLua } from "../../lifecycle/read-fields.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Redis } from "../../redis/connect.ts";
import { isOutOfMemory } from "../../redis/errors.ts";
import { keys } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { sortedJson } from "../../schema/sorted-json.ts";
import { refusal } from "../errors.ts";

const KEPT_MS = LIMITS.idempotency_hours.value * 3_600_000;
/** How long an id stays void: longer than any submit takes. */
const VOID_MS = LIMITS.void_minutes.value * 60_000;
/** Keys outlive the latest possible end of a delegation by this: the sweep may be late, and clocks differ. */
const SLACK_MS = 86_400_000;
/** A key is kept at least this long after its record, so that a submit that read it before is refused. */
const GONE_MS = 60_000;
const KEY = /^[\x20-\x7e]{1,255}$/;

/** KEYS[1] the key · ARGV: expected text, new text, ttl in ms · Returns 1 when it was replaced. */
const exchangeScript = new Script(`#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`);

/** KEYS[1] the key · ARGV: expected text · Returns 1 when it was deleted. */
const dropScript = new Script(`#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`);

/** KEYS[1] the key · ARGV: the delegation's id, created at, ttl in ms. */
const retireScript = new Script(`#!lua flags=allow-oom
local hash, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+)')
if id == ARGV[1] then redis.call('SET', KEYS[1], hash .. ' ' .. id .. ' gone ' .. ARGV[2], 'PX', ARGV[3]) end
return 1`);

/** KEYS[1] the record's key · ARGV: how long the id stays void, ms · Returns 0 when there is a record. */
const voidScript = new Script(`#!lua flags=allow-oom
if ${isRecordLua("KEYS[1]")} then return 0 end
redis.call('HSET', KEYS[1], 'voided', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`);

/** A body's hash, whatever the order of its members. */
export const bodyHash = (body: unknown): string => digest("sha256", sortedJson(body), "base64url");

const nameOf = (principal: string, key: string): string =>
  digest("sha256", `${principal}\n${key}`, "base64url");

/** Throws `invalid_request` unless it is a legal key. */
export function requireKey(key: string): void {
  if (KEY.test(key)) return;
  throw new ErrandError("invalid_request", "The Idempotency-Key is not valid.", {
    details: { issues: [{ path: "Idempotency-Key", reason: "1 to 255 printable ASCII characters" }] },
  });
}

/** The characters of an id that a principal creates with this key, always the same ones. */
export const derivedId = (principal: string, key: string): string =>
  BigInt(`0x${digest("sha256", `${principal}\n${key}`, "hex")}`)
    .toString(36)
    .padStart(DERIVED_LENGTH, "0")
    .slice(-DERIVED_LENGTH);
const DERIVED_LENGTH = 26;

export interface Reservation {
  readonly id: string;
  /** The key's name, stored in the record: the key is retired before the record is deleted. */
  readonly name: string;
  /** The delegation of an earlier request with this key. */
  readonly earlier: StoredDelegation | null;
  /**
   * Deletes the key after a refused submit. Returns false if another request has created a delegation with this id. If
   * it returns true, no request will create one.
   */
  readonly refuse: () => Promise<boolean>;
}

export interface ReserveOptions {
  readonly redis: Redis;
  /** How long the delegation's record can exist from now, ms. */
  readonly longestMs: number;
  readonly principal: string;
  readonly key: string;
  readonly body: unknown;
  readonly newId: string;
  readonly find: (id: string) => Promise<StoredDelegation | null>;
  /** The key of an id's record. */
  readonly recordKey: (id: string) => string;
  /** When the last agent of the principal's name was deleted, ms; null: never, or the principal is not an agent. */
  readonly deletedAt: () => Promise<number | null>;
  /** Why a new delegation is refused: the key is only looked up, and this is thrown when it has no delegation. */
  readonly refused: ErrandError | null;
  /** An id that the caller found to be void; null: none. */
  readonly voided: string | null;
  /** A key whose delegation is finished or deleted is free again, also for another body. */
  readonly renews?: boolean | undefined;
}

/**
 * Reserves `newId` for this key, or returns the delegation that the key already has. Throws `idempotency_conflict` when
 * the key was used with another body, and `already_finished` when its delegation is deleted; with `renews`, only a live
 * delegation keeps the key.
 */
export async function reserve(options: ReserveOptions): Promise<Reservation> {
  const { redis, key, newId, find, refused } = options;
  requireKey(key);
  const name = nameOf(options.principal, key);
  const redisKey = keys.idempotency(name);
  const hash = bodyHash(options.body);
  const keptMs = Math.max(KEPT_MS, Math.round(options.longestMs) + SLACK_MS);
  const exchange = async (from: string, to: string): Promise<boolean> =>
    (await exchangeScript.run(redis, [redisKey], [from, to, keptMs])) === 1;
  const drop = async (text: string): Promise<boolean> =>
    (await dropScript.run(redis, [redisKey], [text])) === 1;
  const makeVoid = async (id: string): Promise<boolean> =>
    (await voidScript.run(redis, [options.recordKey(id)], [VOID_MS])) === 1;
  const reservation = (id: string, earlier: StoredDelegation | null = null): Reservation => ({
    id,
    name,
    earlier,
    refuse: async () => {
      if (await drop(`${hash} ${id}`)) return true;
      if (!(await makeVoid(id))) return false;
      await drop(`${hash} ${id} shared`);
      return true;
    },
  });
  const wanted = `${hash} ${newId}`;

  for (;;) {
    const stored = await setOrGet(options, redisKey, wanted, keptMs);
    if (stored === null) return reservation(newId);
    const [storedHash, id = "", mark = "", created = ""] = stored.split(" ");
    const earlier = await find(id);
    const createdAt = earlier?.get("created_at") ?? (mark === "gone" ? Number(created) : null);
    if (createdAt !== null) {
      const isOver = options.renews === true && earlier?.finished !== false;
      // Otherwise a deleted agent of the same name used the key.
      if (isOver || createdAt < ((await options.deletedAt()) ?? 0)) {
        if (refused) throw refused;
        if (await exchange(stored, wanted)) return reservation(newId);
        continue;
      }
      if (storedHash !== hash) throw conflict(id);
      if (earlier) return reservation(id, earlier);
      throw refusal({ kind: "deleted", now: 0 }, id);
    }
    if (refused) throw refused;
    if (storedHash === hash && mark !== "voiding") {
      const shared = `${hash} ${id} shared`;
      const isVoid = id === options.voided;
      if (stored !== shared || isVoid) {
        if (!(await exchange(stored, isVoid ? wanted : shared))) continue;
      }
      return reservation(isVoid ? newId : id);
    }
    if (mark !== "voiding" && (await options.deletedAt()) === null) throw conflict(id);
    const voiding = `${storedHash} ${id} voiding`;
    if (mark !== "voiding" && !(await exchange(stored, voiding))) continue;
    const isVoid = await makeVoid(id);
    if (!(await exchange(voiding, isVoid ? wanted : `${storedHash} ${id}`))) continue;
    if (isVoid) return reservation(newId);
  }
}

export interface KeyOwner {
  readonly redis: Redis;
  readonly principal: string;
  readonly key: string;
  readonly find: ReserveOptions["find"];
  readonly deletedAt: ReserveOptions["deletedAt"];
}

/** The delegation that the principal's key has; null if there is none. Writes nothing. */
export async function findByKey({ redis, principal, key, find, deletedAt }: KeyOwner) {
  const stored = await redis.get(keys.idempotency(nameOf(principal, key)));
  const [, id = ""] = stored?.split(" ") ?? [];
  const record = id === "" ? null : await find(id);
  // A deleted agent of the same name used the key.
  return record && record.get("created_at") < ((await deletedAt()) ?? 0) ? null : record;
}

/** Sets the key and returns null, or returns its text. At full memory it only reads, so that retries find their work. */
async function setOrGet(
  { redis, refused }: ReserveOptions,
  redisKey: string,
  wanted: string,
  keptMs: number,
): Promise<string | null> {
  let problem: unknown = refused;
  try {
    if (!refused) return await redis.set(redisKey, wanted, "PX", keptMs, "NX", "GET");
  } catch (error) {
    if (!isOutOfMemory(error)) throw error;
    problem = error;
  }
  const stored = await redis.get(redisKey);
  if (stored === null) throw problem;
  return stored;
}

const conflict = (delegation_id: string): ErrandError =>
  new ErrandError(
    "idempotency_conflict",
    `This Idempotency-Key was used with another body, for ${delegation_id}.`,
    {
      delegation_id,
    },
  );

/**
 * Called before a record is deleted: marks its key as gone, until 24 h after the submit. `name` is the record's field
 * `idempotency`. Safe to repeat.
 */
export async function retireKey(
  redis: Redis,
  { name, id, created_at, now }: { name: string; id: string; created_at: number; now: number },
): Promise<void> {
  const left = Math.max(GONE_MS, created_at + KEPT_MS - now);
  await retireScript.run(redis, [keys.idempotency(name)], [id, created_at, left]);
}
