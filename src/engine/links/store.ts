/**
 * Stores answer links. A link's secret is derived from a key of the broker and from what the link is for, so each try of a
 * notification has the same link, and no job, list or log holds the secret. Redis has its hash, with what it is for.
 */
import { createHash, createHmac, randomBytes } from "node:crypto";
import * as z from "zod";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { MadeOnce } from "../../redis/made-once.ts";
import { Script } from "../../redis/script.ts";
import { randomId } from "../../redis/shards.ts";
import { LIMITS } from "../../schema/limits.ts";
import { channelKindSchema } from "../../schema/notice.ts";
import { parseJson } from "../../util/parse-json.ts";

const linkSchema = z.object({
  /** In whose name it answers. */
  person: z.string(),
  subscription: z.string(),
  channel: channelKindSchema,
  delegation: z.string(),
  question: z.string(),
  digest: z.string(),
  /** What it may do: everything that the page offers, or only this one decision. */
  may: z.enum(["answer", "deny", "approve"]),
  /** The subscription's epoch when the link was sent. */
  epoch: z.string(),
  /** What it answered; absent: it was not used. */
  used: z.string().optional(),
  /** How many links for the same question and channel were used before it; absent: none. */
  again: z.number().optional(),
  /** Why it was last refused. */
  refused: z.string().optional(),
});
export type Link = z.infer<typeof linkSchema>;

const CLAIM_MS = 10_000;

export type Claim =
  | { readonly kind: "mine"; readonly value: string }
  | { readonly kind: "shared" | "busy" | "used" };

/** KEYS: claim · ARGV: its value */
const releaseScript = new Script(`#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`);
/** KEYS: link · ARGV: what it is from now on */
const markScript = new Script(`#!lua
local stored = redis.call('GET', KEYS[1])
if not stored or cjson.decode(stored).used and not cjson.decode(ARGV[1]).used then return end
redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')`);

const hashOf = (token: string): string => createHash("sha256").update(token).digest("base64url");

export class LinkStore {
  readonly #redis: Redis;
  readonly #key: MadeOnce;
  readonly #most: number;

  /** `most`: links of one person. */
  constructor(redis: Redis, most: number = LIMITS.links.value) {
    this.#redis = redis;
    this.#most = most;
    this.#key = new MadeOnce(redis, keys.linkKey, () => randomBytes(32).toString("base64url"));
  }

  /**
   * Returns the link's secret: the same for the same link until it is used, then another. So many reminders have one link, and
   * after a voided approval the next notification has a new one. The link ends at `expires_at`, ms.
   */
  async mint(link: Link, expires_at: number): Promise<string> {
    for (let again = 0; ; again += 1) {
      const json = JSON.stringify(again === 0 ? link : { ...link, again });
      const token = `lnk_${createHmac("sha256", await this.#key.get())
        .update(json)
        .digest("base64url")}`;
      const key = keys.link(hashOf(token));
      const isNew = (await this.#redis.set(key, json, "PXAT", Math.ceil(expires_at), "NX")) !== null;
      if (isNew) await this.#count(link.person, token, expires_at);
      if (isNew || (await this.find(token))?.used === undefined) return token;
    }
  }

  /**
   * Keeps the newest links of the person: questions may stay open for a year, and a link stays when its question is closed.
   * Limit: a link whose gateway dies here is not counted, and only expires.
   */
  async #count(person: string, token: string, expires_at: number): Promise<void> {
    const key = keys.linksOf(person);
    const count = await this.#redis.lpush(key, hashOf(token));
    // The first one gives the list its end; a later end replaces it.
    await this.#redis.pexpireat(key, Math.ceil(expires_at), "NX");
    await this.#redis.pexpireat(key, Math.ceil(expires_at), "GT");
    const old = count > this.#most ? await this.#redis.rpop(key) : null;
    if (old !== null) await this.#redis.del(keys.link(old));
  }

  async find(token: string): Promise<Link | null> {
    const json = await this.#redis.get(keys.link(hashOf(token)));
    return json === null ? null : (linkSchema.safeParse(parseJson(json)).data ?? null);
  }

  /**
   * Claims the link for this answer, so that two presses at once do not answer differently. `mine`: until it is released.
   * `shared`: the same answer is being given. `busy`: another one is. `used`: another one was given. Limit: a claim whose
   * gateway dies ends after 10 s.
   */
  async claim(token: string, answered: string): Promise<Claim> {
    const key = keys.linkPress(hashOf(token));
    const value = `${randomId(10)} ${answered}`;
    const before = await this.#redis.set(key, value, "PX", CLAIM_MS, "NX", "GET");
    if (before !== null) return { kind: before.slice(11) === answered ? "shared" : "busy" };
    const used = (await this.find(token))?.used;
    if (used === undefined || used === answered) return { kind: "mine", value };
    await this.release(token, { kind: "mine", value });
    return { kind: "used" };
  }

  /** The answer was given, or refused: then another may be given at once. */
  async release(token: string, claim: Claim): Promise<void> {
    if (claim.kind === "mine")
      await releaseScript.run(this.#redis, [keys.linkPress(hashOf(token))], [claim.value]);
  }

  /** Stores that the link was used, or why it was refused; a refusal never undoes that it was used. */
  async mark(token: string, link: Link, more: Pick<Link, "used" | "refused">): Promise<void> {
    await markScript.run(this.#redis, [keys.link(hashOf(token))], [JSON.stringify({ ...link, ...more })]);
  }
}
