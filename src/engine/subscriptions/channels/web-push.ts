/**
 * Web Push (RFC 8030), encrypted for the browser (RFC 8291) and signed with a key of the broker (VAPID, RFC 8292). The key is
 * made once, by the first gateway that needs it.
 */
import { createECDH } from "node:crypto";
import * as z from "zod";
import type { Redis } from "../../../redis/connect.ts";
import { keys } from "../../../redis/keys.ts";
import { MadeOnce } from "../../../redis/made-once.ts";
import type { Channel } from "../../../schema/subscription.ts";
import { parseJson } from "../../../util/parse-json.ts";
import type { Composed } from "../composed.ts";
import type { HttpPost } from "./outcome.ts";

const TTL_SECONDS = 86_400;
/** A push service takes a signature for at most a day. */
const SIGNED_SECONDS = 43_200;

const vapidSchema = z.object({
  kty: z.literal("EC"),
  crv: z.literal("P-256"),
  x: z.string(),
  y: z.string(),
  d: z.string(),
});
type Vapid = z.infer<typeof vapidSchema>;

export class WebPush {
  readonly #key: MadeOnce;
  readonly #subject: () => string;

  /** `subject`: whom a push service asks when something is wrong, a URL. */
  constructor(redis: Redis, subject: () => string) {
    this.#key = new MadeOnce(redis, keys.vapid, makeKey);
    this.#subject = subject;
  }

  /** What a browser needs to subscribe, in base64url. */
  async publicKey(): Promise<string> {
    return toPublicKey(await this.#vapid());
  }

  async call(
    { url, keys: browser }: Extract<Channel, { kind: "web_push" }>,
    { notification, buttons }: Composed,
  ): Promise<HttpPost> {
    // Both are loaded when the first browser is notified: most brokers notify none.
    const [{ encrypt }, { SignJWT, importJWK }] = await Promise.all([import("http_ece"), import("jose")]);
    const vapid = await this.#vapid();
    const privateKey = createECDH("prime256v1");
    privateKey.generateKeys();
    const text = JSON.stringify({ ...notification, buttons });
    const body = encrypt(Buffer.from(text), {
      version: "aes128gcm",
      privateKey,
      dh: browser.p256dh,
      authSecret: browser.auth,
    });
    const token = await new SignJWT()
      .setProtectedHeader({ alg: "ES256", typ: "JWT" })
      .setAudience(new URL(url).origin)
      .setSubject(this.#subject())
      .setExpirationTime(Math.floor(Date.now() / 1000) + SIGNED_SECONDS)
      .sign(await importJWK(vapid, "ES256"));
    const headers = {
      "content-type": "application/octet-stream",
      "content-encoding": "aes128gcm",
      ttl: String(TTL_SECONDS),
      urgency: notification.type.startsWith("question") ? "high" : "normal",
      authorization: `vapid t=${token}, k=${toPublicKey(vapid)}`,
    };
    return { url, headers, body };
  }

  async #vapid(): Promise<Vapid> {
    return vapidSchema.parse(parseJson(await this.#key.get()));
  }
}

async function makeKey(): Promise<string> {
  const { exportJWK, generateKeyPair } = await import("jose");
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  return JSON.stringify(await exportJWK(privateKey));
}

/** As an uncompressed point. */
const toPublicKey = ({ x, y }: Vapid): string =>
  Buffer.concat([Buffer.from([4]), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]).toString(
    "base64url",
  );
