/**
 * Signs agent cards with the configured key. Signatures are cached, because some algorithms produce a different one
 * each time, and an unchanged card should keep its signature.
 */
import { createHash, type JsonWebKey } from "node:crypto";
import { AgentCard, generateAgentCardSignature } from "@a2a-js/sdk";
import { calculateJwkThumbprint, importJWK } from "jose";
import type { SigningKey } from "../../../schema/signing-key.ts";
import { BoundedMap } from "../../../util/bounded.ts";
import { cardJson } from "../sdk.ts";

const MAX_CACHED = 10_000;

export class CardSigner {
  readonly #key: SigningKey;
  readonly #signed = new BoundedMap<string, Promise<AgentCard>>(MAX_CACHED);
  #sign: ReturnType<typeof generateAgentCardSignature> | undefined;

  constructor(key: SigningKey) {
    this.#key = key;
  }

  sign(card: AgentCard): Promise<AgentCard> {
    const json = cardJson(card);
    const hash = createHash("sha256").update(JSON.stringify(json)).digest("base64");
    const cached = this.#signed.get(hash);
    if (cached) return cached;
    const signed = this.#create(json);
    this.#signed.set(hash, signed);
    // A failure is not cached.
    signed.catch(() => this.#signed.delete(hash));
    return signed;
  }

  async #create(json: AgentCard): Promise<AgentCard> {
    const { jwk, alg } = this.#key;
    const kid = this.#key.kid ?? (await calculateJwkThumbprint(publicPart(jwk)));
    this.#sign ??= generateAgentCardSignature(await importJWK({ ...jwk }, alg).then(asKey), {
      alg,
      kid,
      typ: "JOSE",
    });
    return AgentCard.fromJSON(await this.#sign(json));
  }
}

function asKey<T>(key: T | Uint8Array): T {
  if (key instanceof Uint8Array) throw new TypeError("a symmetric key cannot sign agent cards");
  return key;
}

const publicPart = ({ kty, crv, x, y, n, e }: JsonWebKey) =>
  Object.fromEntries(Object.entries({ kty, crv, x, y, n, e }).filter(([, member]) => member !== undefined));
