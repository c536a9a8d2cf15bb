/**
 * Idempotency keys: the same key and body of a principal always lead to the same delegation.
 * Limit: a key lives until its delegation's record is deleted, and at least 24 h; a refused submit leaves no key.
 *
 * A reservation names the delegation's id before there is one, so it can be repeated at every step: each request that
 * finds it submits under that id, and the script makes one record of it. Its text is `<hash of the body> <id> <mark>`:
 * - no mark: only the request that set the key submits, or submitted, under the id;
 * - `shared`: other requests with the same body submit under it too;
 * - `voiding`: another body takes the key; first the id is voided, so that no submit still under way can use it;
 * - `refused`: an older version left it after a refusal; the key is free for another body;
 * - `gone <created at>`: the delegation's record was deleted.
 */
import { hash as digest } from "node:crypto";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import type { Redis } from "../../redis/connect.ts";
import { isOutOfMemory } from "../../redis/errors.ts";
import { keys } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { refusal } from "../errors.ts";

const KEPT_MS = LIMITS.idempotency_hours.value * 3_600_000;
/** How long an id stays void: longer than any submit takes. */
const VOID_MS = LIMITS.void_minutes.value * 60_000;
/** Added to the latest end that a delegation can have: the sweep may be late, and clocks differ. */
const SLACK_MS = 86_400_000;
/** How long a submit that read the key before its record was deleted is refused. */
const GONE_MS = 60_000;
const KEY = /^[\x20-\x7e]{1,255}$/;

/** KEYS[1] the key · ARGV: expected text, new text, ttl in ms · 1 when it was replaced. */
const exchangeScript = new Script(`#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`);

/** KEYS[1] the key · ARGV: expected text · 1 when it was deleted. */
const dropScript = new Script(`#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`);

/** KEYS[1] the key · ARGV: the delegation's id, created at, ttl in ms. */
const retireScript = new Script(`#!lua flags=allow-oom
local hash, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+)')
if id == ARGV[1] then redis.call('SET', KEYS[1], hash .. ' ' .. id .. ' gone ' .. ARGV[2], 'PX', ARGV[3]) end
return 1`);

/** KEYS[1] the record's key · ARGV: how long the id stays void, ms · 0 when there is a record. */
const voidScript = new Script(`#!lua flags=allow-oom
if redis.call('HEXISTS', KEYS[1], 'state') == 1 then return 0 end
redis.call('HSET', KEYS[1], 'voided', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`);

/** A body's hash, whatever the order of its members. */
export const bodyHash = (body: unknown): string => digest("sha256", sortedJson(body), "base64url");

/** JSON text with the members of every object in the order of their names. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const texts = members
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([k, v]) => `${JSON.stringify(k)}:${sortedJson(v)}`);
  return `{${texts.join(",")}}`;
}

export interface Reservation {
  readonly id: string;
  /** The key's name, stored in the record: the key is retired before the record is deleted. */
  readonly name: string;
  /** The delegation of an earlier request with this key. */
  readonly earlier: StoredDelegation | null;
  /**
   * Deletes the key after a refused submit. False when another request made a delegation with this id; else the id is
   * void, or no other request knows it.
   */
  readonly refuse: () => Promise<boolean>;
}

export interface ReserveOptions {
  readonly redis: Redis;
  /** The longest that the delegation's record can exist from now, ms. */
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
  /** Refusal of a new delegation: the key is then only looked up, and this is thrown when it has no delegation. */
  readonly refused: ErrandError | null;
  /** An id that the caller found to be void; null: none. */
  readonly voided: string | null;
}

/**
 * Reserves `newId` for this key, or returns the delegation that has it. Throws `idempotency_conflict` when the key was used
 * with another body, and `already_finished` when its delegation is deleted.
 */
export async function reserve(options: ReserveOptions): Promise<Reservation> {
  const { redis, key, newId, find, refused } = options;
  if (!KEY.test(key)) {
    throw new ErrandError("invalid_request", "The Idempotency-Key is not usable.", {
      details: { issues: [{ path: "Idempotency-Key", reason: "1 to 255 printable ASCII characters" }] },
    });
  }
  const name = digest("sha256", `${options.principal}\n${key}`, "base64url");
  const place = keys.idempotency(name);
  const hash = bodyHash(options.body);
  const keptMs = Math.max(KEPT_MS, Math.round(options.longestMs) + SLACK_MS);
  const exchange = async (from: string, to: string): Promise<boolean> =>
    (await exchangeScript.run(redis, [place], [from, to, keptMs])) === 1;
  const drop = async (text: string): Promise<boolean> => (await dropScript.run(redis, [place], [text])) === 1;
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
    const held = await take(options, place, wanted, keptMs);
    if (held === null) return reservation(newId);
    const [heldHash, id = "", mark = "", created = ""] = held.split(" ");
    const earlier = await find(id);
    const made = earlier?.created_at ?? (mark === "gone" ? Number(created) : null);
    if (made !== null) {
      if (made < ((await options.deletedAt()) ?? 0)) {
        // A deleted agent of the same name used it.
        if (refused) throw refused;
        if (await exchange(held, wanted)) return reservation(newId);
        continue;
      }
      if (heldHash !== hash) throw conflict(id);
      if (earlier) return reservation(id, earlier);
      throw refusal({ kind: "deleted", now: 0 }, id);
    }
    if (refused) throw refused;
    if (heldHash === hash && mark !== "voiding") {
      const shared = `${hash} ${id} shared`;
      const isVoid = id === options.voided;
      if (held !== shared || isVoid) {
        if (!(await exchange(held, isVoid ? wanted : shared))) continue;
      }
      return reservation(isVoid ? newId : id);
    }
    if ((mark === "" || mark === "shared") && (await options.deletedAt()) === null) throw conflict(id);
    const voiding = `${heldHash} ${id} voiding`;
    if (mark !== "voiding" && !(await exchange(held, voiding))) continue;
    const isVoid = await makeVoid(id);
    if (!(await exchange(voiding, isVoid ? wanted : `${heldHash} ${id}`))) continue;
    if (isVoid) return reservation(newId);
  }
}

/** Null when the key is ours now, else its text. At full memory it only reads, so that retries still find accepted work. */
async function take(
  { redis, refused }: ReserveOptions,
  place: string,
  wanted: string,
  keptMs: number,
): Promise<string | null> {
  let problem: unknown = refused;
  try {
    if (!refused) return await redis.set(place, wanted, "PX", keptMs, "NX", "GET");
  } catch (error) {
    if (!isOutOfMemory(error)) throw error;
    problem = error;
  }
  const held = await redis.get(place);
  if (held === null) throw problem;
  return held;
}

const conflict = (delegation_id: string): ErrandError =>
  new ErrandError(
    "idempotency_conflict",
    `This Idempotency-Key was used for ${delegation_id} with another body.`,
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
