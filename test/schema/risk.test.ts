import { expect, test } from "vitest";
import { riskOf, riskRuleSchema } from "../../src/schema/risk.ts";

test("of several rules that match an action, the highest risk counts", () => {
  const rules = [
    { action: "fs.*", risk: "medium" },
    { action: "fs.delete", risk: "high" },
    { action: "*", risk: "low" },
  ] as const;
  expect(riskOf(rules, "fs.delete")).toBe("high");
  expect(riskOf(rules, "fs.read")).toBe("medium");
  expect(riskOf(rules, "constructor")).toBe("low");
  expect(riskOf(rules.slice(0, 2), "fs")).toBeNull();
  expect(riskOf([], "deploy")).toBeNull();
});

test("a rule has a star only at the end of the name", () => {
  expect(riskRuleSchema.safeParse({ action: "fs.*", risk: "low" }).success).toBe(true);
  for (const wrong of [
    { action: "*.fs", risk: "low" },
    { action: "", risk: "low" },
    { action: "fs", risk: "huge" },
  ])
    expect(riskRuleSchema.safeParse(wrong).success).toBe(false);
});
