/** What a run has used, as far as the agent reports it. Limit: the cost is that of the conversation so far, not of the run. */
import { z } from "zod";
import type { Prompted, Update } from "./schemas.ts";

const count = z.number().nonnegative().nullish().catch(undefined);
const tokensSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedReadTokens: count,
  thoughtTokens: count,
});
/** Gemini CLI reports under `_meta.quota`. */
const quotaSchema = z.object({
  quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }),
});

export interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cached_tokens?: number;
  readonly reasoning_tokens?: number;
  /** Of the whole conversation. */
  readonly conversation_cost?: { readonly amount: number; readonly currency: string };
  readonly context?: { readonly used: number; readonly size: number };
}

export class UsageCount {
  #usage: Usage = {};

  get usage(): Usage {
    return this.#usage;
  }

  update({ used, size, cost }: Extract<Update, { sessionUpdate: "usage_update" }>): void {
    this.#usage = {
      ...this.#usage,
      ...(used != null && size != null && { context: { used, size } }),
      ...(cost != null && { conversation_cost: cost }),
    };
  }

  prompted({ usage, _meta }: Prompted): void {
    const tokens = tokensSchema.safeParse(usage).data;
    const quota = quotaSchema.safeParse(_meta).data?.quota.token_count;
    this.#add("input_tokens", tokens?.inputTokens ?? quota?.input_tokens);
    this.#add("output_tokens", tokens?.outputTokens ?? quota?.output_tokens);
    this.#add("cached_tokens", tokens?.cachedReadTokens);
    this.#add("reasoning_tokens", tokens?.thoughtTokens);
  }

  #add(
    name: "input_tokens" | "output_tokens" | "cached_tokens" | "reasoning_tokens",
    more: number | null | undefined,
  ): void {
    if (more != null) this.#usage = { ...this.#usage, [name]: (this.#usage[name] ?? 0) + more };
  }
}
