/**
 * Signs agent cards with the configured key. A card that stays the same keeps its signature: some algorithms make
 * another one each time. Limit: remembers a bounded number of them, in this process.
 */
import { createHash, type JsonWebKey } from "node:crypto";
import { AgentCard, generateAgentCardSignature } from "@a2a-js/sdk";
import { calculateJwkThumbprint, importJWK } from "jose";
import type { SigningKey } from "../../../schema/signing-key.ts";
import { cardJson } from "../sdk.ts";

const REMEMBERED = 10_000;

export class Signer {
  readonly #key: SigningKey;
  readonly #signed = new Map<string, Promise<AgentCard>>();
  #sign: ReturnType<typeof generateAgentCardSignature> | undefined;

  constructor(key: SigningKey) {
    this.#key = key;
  }

  sign(card: AgentCard): Promise<AgentCard> {
    const form = cardJson(card);
    const hash = createHash("sha256").update(JSON.stringify(form)).digest("base64");
    const known = this.#signed.get(hash);
    if (known) return known;
    if (this.#signed.size >= REMEMBERED) this.#signed.clear();
    const signed = this.#make(form);
    this.#signed.set(hash, signed);
    // What failed is tried anew.
    signed.catch(() => this.#signed.delete(hash));
    return signed;
  }

  async #make(form: AgentCard): Promise<AgentCard> {
    const { jwk, alg } = this.#key;
    const kid = this.#key.kid ?? (await calculateJwkThumbprint(publicPart(jwk)));
    this.#sign ??= generateAgentCardSignature(await importJWK({ ...jwk }, alg).then(asKey), {
      alg,
      kid,
      typ: "JOSE",
    });
    return AgentCard.fromJSON(await this.#sign(form));
  }
}

function asKey<T>(key: T | Uint8Array): T {
  if (key instanceof Uint8Array) throw new TypeError("a symmetric key signs no cards");
  return key;
}

const publicPart = ({ kty, crv, x, y, n, e }: JsonWebKey) =>
  Object.fromEntries(Object.entries({ kty, crv, x, y, n, e }).filter(([, member]) => member !== undefined));
