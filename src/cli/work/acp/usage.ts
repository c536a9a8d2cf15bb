/** What a run has used, as far as the agent reports it. Limit: the cost is that of the conversation so far, not of the run. */
import * as z from "zod";
import { type UsageReport, usageReportSchema } from "../../../schema/usage.ts";
import type { Prompted, Update } from "./schemas.ts";

const count = z.int().nonnegative().nullish().catch(undefined);
const tokensSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedReadTokens: count,
  cachedWriteTokens: count,
  thoughtTokens: count,
  totalTokens: count,
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

/** Some agents count cached input, or the reasoning, besides the input and the output: then the total says so. */
function allTokens(tokens: z.infer<typeof tokensSchema> | undefined) {
  const { inputTokens, outputTokens, totalTokens } = tokens ?? {};
  if (inputTokens == null || outputTokens == null) return tokens;
  const cached = (tokens?.cachedReadTokens ?? 0) + (tokens?.cachedWriteTokens ?? 0);
  const thought = tokens?.thoughtTokens ?? 0;
  const besides = (totalTokens ?? 0) - inputTokens - outputTokens;
  return {
    ...tokens,
    inputTokens: inputTokens + ([cached, cached + thought].includes(besides) ? cached : 0),
    outputTokens: outputTokens + ([thought, cached + thought].includes(besides) ? thought : 0),
  };
}

export class UsageCount {
  #usage: Usage = {};

  get usage(): Usage {
    return this.#usage;
  }

  /** For the broker; `sinceStart` turns the conversation's cost into that of the run. */
  report(sinceStart: (total: UsageReport) => UsageReport): UsageReport {
    const { context: _context, conversation_cost: total, ...tokens } = this.#usage;
    // The broker would refuse a cost that does not fit, and the tokens with it.
    const { data: cost } = usageReportSchema.safeParse({ cost: total?.amount, currency: total?.currency });
    return { ...tokens, ...(cost?.cost !== undefined && sinceStart(cost)) };
  }

  update({ used, size, cost }: Extract<Update, { sessionUpdate: "usage_update" }>): void {
    this.#usage = {
      ...this.#usage,
      ...(used != null && size != null && { context: { used, size } }),
      ...(cost != null && { conversation_cost: cost }),
    };
  }

  prompted({ usage, _meta }: Prompted): void {
    const tokens = allTokens(tokensSchema.safeParse(usage).data);
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
