/**
 * Idempotency keys: the same key and body of a principal lead to the same delegation, whoever asks, however often.
 * Limit: kept for a day, or as long as delegations are if that is shorter; a key that was only ever refused may be used anew.
 *
 * A reservation names the delegation's id before there is one, so it can be repeated at every step: whoever
 * finds it submits under that id, and the script makes one record of it.
 */
import { hash as digest } from "node:crypto";
import type { Redis } from "../redis/connect.ts";
import { keys } from "../redis/keys.ts";
import { Script } from "../redis/script.ts";
import { ErrandError } from "../schema/errors.ts";

const KEPT_MS = 86_400_000;
const KEY = /^[\x20-\x7e]{1,255}$/;

/** KEYS[1] the reservation · ARGV: what it must still say, what it shall say, for how long, ms · 1 when it does. */
const exchangeScript = new Script(`#!lua
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
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
  /** The submit was refused: another body may take the key. */
  readonly refuse: () => Promise<void>;
}

/**
 * Reserves `newId` for this key, or returns the id it already stands for. Throws `idempotency_conflict` when
 * it stands for another body. `exists` tells whether a delegation is there.
 */
export async function reserve(options: {
  readonly redis: Redis;
  /** How long finished delegations are kept: a key that outlived its delegation would make it again. */
  readonly keptMs: number;
  readonly principal: string;
  readonly key: string;
  readonly body: unknown;
  readonly newId: string;
  readonly exists: (id: string) => Promise<boolean>;
}): Promise<Reservation> {
  const { redis, principal, key, body, newId, exists } = options;
  const keptMs = Math.min(KEPT_MS, options.keptMs);
  if (!KEY.test(key)) {
    throw new ErrandError("invalid_request", "The Idempotency-Key is not usable.", {
      details: { issues: [{ path: "Idempotency-Key", reason: "1 to 255 printable ASCII characters" }] },
    });
  }
  const name = keys.idempotency(digest("sha256", `${principal}\n${key}`, "base64url"));
  const hash = bodyHash(body);
  const exchange = (from: string, to: string) => exchangeScript.run(redis, [name], [from, to, keptMs]);
  const reservation = (id: string): Reservation => ({
    id,
    refuse: async () => {
      await exchange(`${hash} ${id}`, `${hash} ${id} refused`);
    },
  });

  const wanted = `${hash} ${newId}`;
  for (;;) {
    const held = await redis.set(name, wanted, "PX", keptMs, "NX", "GET");
    if (held === null) return reservation(newId);
    const [heldHash, id = "", refused] = held.split(" ");
    if (heldHash === hash) return reservation(id);
    if (refused === undefined || (await exists(id))) {
      throw new ErrandError("idempotency_conflict", "This Idempotency-Key stands for another body.", {
        delegation_id: id,
      });
    }
    // Only ever refused, and nothing came of it: the key is free, unless somebody else is quicker.
    if ((await exchange(held, wanted)) === 1) return reservation(newId);
  }
}
