/** Subscriptions: what is told outside the console, and by which channels. */
import * as z from "zod";
import {
  type Subscription,
  type SubscriptionInput,
  type SubscriptionPatchInput,
  type SubscriptionTest,
  subscriptionPageSchema,
  subscriptionSchema,
  subscriptionTestSchema,
  webPushKeySchema,
} from "../schema/subscription.ts";
import type { CallOptions, PageOptions } from "./admin.ts";
import { eachPage } from "./each-page.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";

/**
 * Creates and manages subscriptions. Methods with an `id` throw `not_found` for a subscription that does not exist, or that
 * belongs to somebody else.
 *
 * @example
 * ```ts
 * const subscriptions = new Subscriptions();
 * const { id } = await subscriptions.create({
 *   events: ["question", "question_expiring"],
 *   deliver: [{ kind: "ntfy", url: "https://ntfy.sh/my-long-secret-topic" }],
 * });
 * ```
 */
export class Subscriptions {
  readonly #http: Http;

  /** Sends no request yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * From now on you are told of these events, for as long as your token is valid. Throws `invalid_request` for a channel that
   * the broker cannot use. Not retried, because a repeat would tell you twice.
   */
  create(input: SubscriptionInput, { signal }: CallOptions = {}): Promise<Subscription> {
    const call = { method: "POST", path: "/v1/subscriptions", body: input, signal } as const;
    return this.#http.request(subscriptionSchema, call);
  }

  /** Your subscriptions, oldest first, fetched page by page as the loop asks for them; for the operator all. */
  async *all({ pageSize: limit, signal }: PageOptions = {}): AsyncGenerator<Subscription, void> {
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(subscriptionPageSchema, {
        path: "/v1/subscriptions",
        query: { cursor, limit },
        signal,
      }),
    );
    for await (const { subscriptions } of pages) yield* subscriptions;
  }

  /** Returns all subscriptions at once, otherwise like {@link Subscriptions.all}. */
  async list(options: PageOptions = {}): Promise<Subscription[]> {
    const found: Subscription[] = [];
    for await (const subscription of this.all(options)) found.push(subscription);
    return found;
  }

  /** Its settings, and how each channel goes; without the secrets of the channels. */
  get(id: string, { signal }: CallOptions = {}): Promise<Subscription> {
    return this.#http.requestWithRetry(subscriptionSchema, { path: route`/v1/subscriptions/${id}`, signal });
  }

  /** Changes the settings that are given; `filter` and `deliver` are replaced whole. */
  update(id: string, settings: SubscriptionPatchInput, { signal }: CallOptions = {}): Promise<Subscription> {
    const path = route`/v1/subscriptions/${id}`;
    return this.#http.requestWithRetry(subscriptionSchema, { method: "PATCH", path, body: settings, signal });
  }

  /** Tries failing and paused channels again at once, with what waits. From now on your own depends on this token. */
  resume(id: string, { signal }: CallOptions = {}): Promise<Subscription> {
    const path = route`/v1/subscriptions/${id}/resume`;
    return this.#http.requestWithRetry(subscriptionSchema, { method: "POST", path, signal });
  }

  /** Sends one notification by each channel at once, and returns what became of it. */
  test(id: string, { signal }: CallOptions = {}): Promise<SubscriptionTest> {
    const path = route`/v1/subscriptions/${id}/test`;
    return this.#http.request(subscriptionTestSchema, { method: "POST", path, signal });
  }

  /** Deletes it. What still waits is not sent. */
  async delete(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/subscriptions/${id}`,
      signal,
    });
  }

  /** The broker's public key in base64url: a browser's `applicationServerKey` for the channel `web_push`. */
  async webPushKey({ signal }: CallOptions = {}): Promise<string> {
    return (await this.#http.requestWithRetry(webPushKeySchema, { path: "/v1/web-push-key", signal })).key;
  }
}
