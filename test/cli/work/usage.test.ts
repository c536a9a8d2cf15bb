/** What the programs of presets, ACP agents and commands report as used. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { keptText } from "../../../src/cli/kept-text.ts";
import { UsageCount } from "../../../src/cli/work/acp/usage.ts";
import { claudeUsage } from "../../../src/cli/work/presets/claude-usage.ts";
import { ConversationUsage } from "../../../src/cli/work/presets/conversation-usage.ts";

/** The end of a run of Claude Code 2.1.331, without what does not matter here. */
const RESULT = {
  ...{ type: "result", subtype: "success", total_cost_usd: 0.00036799999999999995 },
  modelUsage: {
    "claude-opus-5-5": {
      ...{ inputTokens: 22, outputTokens: 14, cacheReadInputTokens: 0, cacheCreationInputTokens: 0 },
      ...{ webSearchRequests: 0, costUSD: 0.00036799999999999995, thinkingTokens: 0 },
    },
  },
};
const USED = {
  ...{ input_tokens: 22, output_tokens: 14, cached_tokens: 0, reasoning_tokens: 0 },
  ...{ cost: 0.00036799999999999995, currency: "USD", model: "claude-opus-5-5" },
};

test("Claude Code: the sum over its models, with cached input; nothing for other events, and if it used nothing", () => {
  expect(claudeUsage(RESULT)).toEqual(USED);
  expect(claudeUsage({ ...RESULT, type: "assistant" })).toBeUndefined();
  expect(claudeUsage({ type: "result", total_cost_usd: 0, modelUsage: {} })).toBeUndefined();
  expect(claudeUsage({ type: "result", total_cost_usd: 0.5 })).toEqual({ cost: 0.5, currency: "USD" });
  const modelUsage = {
    small: { inputTokens: 1, outputTokens: 1 },
    large: { inputTokens: 10, outputTokens: 5, cacheReadInputTokens: 100, cacheCreationInputTokens: 1000 },
  };
  expect(claudeUsage({ type: "result", modelUsage })).toEqual({
    ...{ input_tokens: 1111, output_tokens: 6, cached_tokens: 100, reasoning_tokens: 0, model: "large" },
  });
});

async function conversation() {
  const home = mkdtempSync(join(tmpdir(), "errand-usage-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const kept = keptText(home, "sessions", ["k"], /^[\s\S]*$/);
  const run = async (session: string, ...totals: Parameters<ConversationUsage["since"]>[1][]) => {
    const usage = await ConversationUsage.read(kept);
    const used = totals.map((total) => usage.since(session, total));
    await usage.keep(session);
    return used;
  };
  return { kept, run };
}

test("a total of the conversation is reduced by what earlier runs used", async () => {
  const { run } = await conversation();
  const usd = (cost: number) => ({ cost, currency: "USD" });
  expect(await run("a", usd(0.1), usd(0.2))).toEqual([usd(0.1), usd(0.2)]);
  expect(await run("a", usd(0.3), usd(0.5))).toEqual([usd(0.1), usd(0.3)]);
  // The program began to count again.
  expect(await run("a", usd(0.4), usd(0.6))).toEqual([usd(0.4), usd(0.6)]);
  expect(await run("b", { input_tokens: 7 })).toEqual([{ input_tokens: 7 }]);
});

test("what is stored of a conversation may be unreadable", async () => {
  const { kept, run } = await conversation();
  await kept.keep("{");
  expect(await run("a", { input_tokens: 7 })).toEqual([{ input_tokens: 7 }]);
  expect(await run("a", { input_tokens: 9 })).toEqual([{ input_tokens: 2 }]);
});

test.each([
  ["with the cached", { totalTokens: 112, thoughtTokens: 3 }, [100, 12]],
  ["without the cached", { totalTokens: 162, thoughtTokens: 3 }, [150, 12]],
  ["without the cached and the reasoning", { totalTokens: 165, thoughtTokens: 3 }, [150, 15]],
  ["without a total", {}, [100, 12]],
])("ACP: tokens %s", (_, more, [input_tokens, output_tokens]) => {
  const count = new UsageCount();
  const usage = { inputTokens: 100, outputTokens: 12, cachedReadTokens: 40, cachedWriteTokens: 10, ...more };
  count.prompted({ stopReason: "end_turn", usage });
  expect(count.usage).toMatchObject({ input_tokens, output_tokens, cached_tokens: 40 });
});

test("ACP: a cost that the broker would refuse is left out", () => {
  for (const cost of [
    { amount: -1, currency: "USD" },
    { amount: 1, currency: "credits" },
  ]) {
    const count = new UsageCount();
    count.update({ sessionUpdate: "usage_update", cost });
    expect(count.report((total) => total)).toEqual({});
  }
});

test("ACP: a cost that the broker would refuse leaves the tokens", () => {
  const used = { inputTokens: 5, outputTokens: 2 };
  for (const cost of [
    { amount: 3, currency: "usd" },
    { amount: 3, currency: "XYZ" },
    { amount: -1, currency: "USD" },
    { amount: 1e300, currency: "USD" },
  ]) {
    const count = new UsageCount();
    count.update({ sessionUpdate: "usage_update", cost });
    count.prompted({ stopReason: "end_turn", usage: used });
    expect(count.report((total) => total)).toEqual({ input_tokens: 5, output_tokens: 2 });
  }
});
