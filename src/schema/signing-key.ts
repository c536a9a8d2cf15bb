/** The key that signs agent cards: a private JWK. Limit: asymmetric keys only, because others must verify the signature. */
import * as z from "zod";

/** The algorithms of each kind of key, the default first. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  "EC P-256": ["ES256"],
  "EC P-384": ["ES384"],
  "EC P-521": ["ES512"],
  "OKP Ed25519": ["EdDSA", "Ed25519"],
  RSA: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
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
    const algorithms = ALGORITHMS[kty === "RSA" ? kty : `${kty} ${crv}`] ?? [];
    const known = alg === undefined ? algorithms[0] : algorithms.find((one) => one === alg);
    if (known === undefined) {
      const named =
        algorithms.length === 0 ? `crv '${crv}' is unknown` : `alg must be one of ${algorithms.join(", ")}`;
      ctx.addIssue({ code: "custom", message: `cannot sign: ${named}` });
      return z.NEVER;
    }
    const members = { kty, crv, d, x, y, n, e, p, q, dp, dq, qi };
    const jwk = Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined));
    return { jwk, alg: known, kid };
  });
export type SigningKey = z.output<typeof signingKeySchema>;
