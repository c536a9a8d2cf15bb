/**
 * What a conversation of Claude Code has used: `modelUsage` of a result is a sum by model, over the process and the runs that it
 * resumes.
 */
import * as z from "zod";
import type { UsageReport } from "../../../schema/usage.ts";

const count = z.int().min(0).catch(0);
const modelSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cacheReadInputTokens: count,
  cacheCreationInputTokens: count,
  thinkingTokens: count,
});
const resultSchema = z.object({
  type: z.literal("result"),
  total_cost_usd: z.number().min(0).optional().catch(undefined),
  modelUsage: z.record(z.string(), modelSchema).catch({}),
});

/** Undefined for an event that is no result, and for a run that used nothing. */
export function claudeUsage(event: unknown): UsageReport | undefined {
  const { data } = resultSchema.safeParse(event);
  if (data === undefined) return undefined;
  const models = Object.entries(data.modelUsage);
  const cost = data.total_cost_usd ? { cost: data.total_cost_usd, currency: "USD" } : undefined;
  const [main] = [...models].sort(([, a], [, b]) => b.outputTokens - a.outputTokens);
  if (main === undefined) return cost;
  const sum = (of: (usage: z.infer<typeof modelSchema>) => number) =>
    models.reduce((all, [, usage]) => all + of(usage), 0);
  return {
    // Anthropic counts cached input apart.
    input_tokens: sum((one) => one.inputTokens + one.cacheReadInputTokens + one.cacheCreationInputTokens),
    output_tokens: sum(({ outputTokens }) => outputTokens),
    cached_tokens: sum(({ cacheReadInputTokens }) => cacheReadInputTokens),
    reasoning_tokens: sum(({ thinkingTokens }) => thinkingTokens),
    ...cost,
    model: main[0].slice(0, 128),
  };
}
