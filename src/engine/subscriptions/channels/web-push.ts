/**
 * Web Push (RFC 8030), encrypted for the browser (RFC 8291) and signed with the broker's own key (VAPID, RFC 8292). The key
 * is made once, by the first gateway that needs it.
 */
import * as z from "zod";
import type { Redis } from "../../../redis/connect.ts";
import { keys } from "../../../redis/keys.ts";
import type { Channel, Notification } from "../../../schema/subscription.ts";
import { parseJson } from "../../../util/parse-json.ts";
import type { HttpPost } from "./outcome.ts";

const TTL_SECONDS = 86_400;
/** A push service takes at most 4096 bytes, encrypted. */
const MAX_TEXT = 1_000;

const vapidSchema = z.object({ publicKey: z.string(), privateKey: z.string() });
type Vapid = z.infer<typeof vapidSchema>;

export class WebPush {
  readonly #redis: Redis;
  readonly #subject: () => string;
  #keys: Promise<Vapid> | null = null;

  /** `subject`: whom a push service asks when something is wrong, a URL. */
  constructor(redis: Redis, subject: () => string) {
    this.#redis = redis;
    this.#subject = subject;
  }

  /** What a browser needs to subscribe, in base64url. */
  async publicKey(): Promise<string> {
    return (await this.#vapid()).publicKey;
  }

  async call(
    { url, keys: browser }: Extract<Channel, { kind: "web_push" }>,
    notification: Notification,
  ): Promise<HttpPost> {
    const { generateRequestDetails } = await import("web-push");
    const { text, ...rest } = notification;
    const payload = JSON.stringify({ ...rest, text: text.slice(0, MAX_TEXT) });
    const details = generateRequestDetails({ endpoint: url, keys: browser }, payload, {
      TTL: TTL_SECONDS,
      urgency: notification.type.startsWith("question") ? "high" : "normal",
      vapidDetails: { subject: this.#subject(), ...(await this.#vapid()) },
    });
    const headers = Object.entries(details.headers).map(([name, value]) => [
      name.toLowerCase(),
      String(value),
    ]);
    const { "content-length": _, ...sent } = Object.fromEntries(headers);
    return { url: details.endpoint, headers: sent, body: details.body };
  }

  #vapid(): Promise<Vapid> {
    this.#keys ??= this.#find().catch((error: unknown) => {
      this.#keys = null;
      throw error;
    });
    return this.#keys;
  }

  async #find(): Promise<Vapid> {
    const read = async () => vapidSchema.safeParse(parseJson((await this.#redis.get(keys.vapid)) ?? "")).data;
    const known = await read();
    if (known) return known;
    const { generateVAPIDKeys } = await import("web-push");
    await this.#redis.set(keys.vapid, JSON.stringify(generateVAPIDKeys()), "NX");
    const made = await read();
    if (!made) throw new Error("the key for Web Push was not stored");
    return made;
  }
}
