/** Rules that answer: standing approvals and denials of proposed actions. */
import * as z from "zod";
import { type Rule, rulePageSchema, ruleSchema } from "../schema/rule.ts";
import type { RuleInput } from "../schema/rule-request.ts";
import type { CallOptions, PageOptions } from "./admin.ts";
import { eachPage } from "./each-page.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";
import { randomKey } from "./random-key.ts";

export interface RuleOptions extends CallOptions {
  /** A repeat with the same key has the same result. Default: a random key for each call, which its retries share. */
  readonly idempotencyKey?: string | undefined;
}

export interface RuleListOptions extends PageOptions {
  /** Only the rules for this agent. */
  readonly agent?: string | undefined;
}

/**
 * Creates, lists and revokes rules. `get` and `revoke` throw `not_found` for a rule that does not exist, or that belongs to
 * somebody else.
 *
 * @example
 * ```ts
 * const rules = new Rules();
 * const { id } = await rules.create({
 *   agent: "scout",
 *   action: "fs.write",
 *   arguments: [{ name: "path", path_prefix: "/srv/site" }],
 *   decision: "approve",
 *   for_seconds: 20 * 60,
 * });
 * ```
 */
export class Rules {
  readonly #http: Http;

  /** Sends no request yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * From now on the broker answers the agent's proposed actions that fit, in your name. Throws `approval_required` if the
   * agent takes answers only from people.
   */
  create(input: RuleInput, options: RuleOptions = {}): Promise<Rule> {
    const { idempotencyKey = randomKey(), signal } = options;
    return this.#http.requestWithRetry(ruleSchema, {
      method: "POST",
      path: "/v1/rules",
      headers: { "idempotency-key": idempotencyKey },
      body: input,
      signal,
    });
  }

  /** Your rules with their uses, oldest first, fetched page by page as the loop asks for them; for the operator all. */
  async *all({ agent, pageSize: limit, signal }: RuleListOptions = {}): AsyncGenerator<Rule, void> {
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(rulePageSchema, {
        path: "/v1/rules",
        query: { agent, cursor, limit },
        signal,
      }),
    );
    for await (const { rules } of pages) yield* rules;
  }

  /** Returns all rules at once, otherwise like {@link Rules.all}. */
  async list(options: RuleListOptions = {}): Promise<Rule[]> {
    const found: Rule[] = [];
    for await (const rule of this.all(options)) found.push(rule);
    return found;
  }

  /** What it says, whether it is active, and its newest uses. */
  get(id: string, { signal }: CallOptions = {}): Promise<Rule> {
    return this.#http.requestWithRetry(ruleSchema, { path: route`/v1/rules/${id}`, signal });
  }

  /** Once it resolves, nothing is answered by the rule any more. */
  async revoke(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/rules/${id}`,
      signal,
    });
  }
}
