/** The key that signs agent cards: a private JWK. Limit: asymmetric keys alone; a shared secret could not be checked by others. */
import * as z from "zod";

const ALGORITHMS: Readonly<Record<string, string>> = {
  "P-256": "ES256",
  "P-384": "ES384",
  "P-521": "ES512",
  Ed25519: "EdDSA",
};
const text = z.string().min(1).optional();

export const signingKeySchema = z
  .looseObject({
    kty: z.enum(["EC", "OKP", "RSA"], { error: "must be a private JWK of kty EC, OKP or RSA" }),
    crv: text,
    d: z.string({ error: "must be a private key (there is no 'd')" }).min(1),
    x: text,
    y: text,
    n: text,
    e: text,
    p: text,
    q: text,
    dp: text,
    dq: text,
    qi: text,
    alg: text,
    kid: text,
  })
  .transform(({ kty, crv, d, x, y, n, e, p, q, dp, dq, qi, alg, kid }, ctx) => {
    const known = alg ?? (kty === "RSA" ? "RS256" : ALGORITHMS[crv ?? ""]);
    if (known === undefined) {
      ctx.addIssue({ code: "custom", message: "names no algorithm (alg) and no curve that tells it" });
      return z.NEVER;
    }
    const members = { kty, crv, d, x, y, n, e, p, q, dp, dq, qi };
    const jwk = Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined));
    return { jwk, alg: known, kid };
  });
export type SigningKey = z.output<typeof signingKeySchema>;
