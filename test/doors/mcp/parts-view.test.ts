/** How many bytes of its parts leased work shows. */
import { expect, test } from "vitest";
import { ByteBudget } from "../../../src/doors/mcp/tools/content.ts";
import { partsText, toPartsView } from "../../../src/doors/mcp/tools/parts-view.ts";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { completedWith } from "../../client/stub-broker.ts";

test("parts share the bytes, and those that do not fit are counted", () => {
  const delegation = delegationSchema.parse(completedWith("x".repeat(50_000)));
  const { id: delegation_id, state } = delegation;
  const children = (count: number) =>
    Array.from({ length: count }, () => ({ delegation_id, state, delegation }));
  const four = toPartsView({ outcome: "ended", children: children(4) }, new ByteBudget(20_000));
  expect(four.parts_omitted).toBeUndefined();
  const lengths = four.parts.map(({ reply }) => reply?.text?.length ?? 0);
  expect(Math.min(...lengths)).toBe(Math.max(...lengths));
  expect(lengths[0]).toBeGreaterThan(4_000);
  expect(four.parts[0]).toMatchObject({ reply: { truncated: true } });
  expect(four.parts[0]?.next).toContain("full: true");

  const many = toPartsView({ outcome: "time_limit", children: children(1_000) }, new ByteBudget(20_000));
  expect(JSON.stringify(many).length).toBeLessThan(22_000);
  expect(many.parts.length + (many.parts_omitted ?? 0)).toBe(1_000);
  expect(partsText(many)).toContain(`[${many.parts_omitted} more parts not shown`);
  expect(partsText(many)).toContain("The time limit was over");

  const whole = toPartsView(
    { outcome: "ended", children: children(1) },
    new ByteBudget(Number.POSITIVE_INFINITY),
  );
  expect(whole.parts[0]?.reply).toEqual({ text: "x".repeat(50_000) });
});

test("a deleted part and one of another delegator show their state", () => {
  const view = toPartsView(
    {
      outcome: "ended",
      children: [
        { delegation_id: "dlg_0_1", state: null },
        { delegation_id: "dlg_0_2", state: "completed" },
      ],
    },
    new ByteBudget(1_000),
  );
  expect(view.parts).toEqual([
    { delegation_id: "dlg_0_1", state: "deleted" },
    { delegation_id: "dlg_0_2", state: "completed" },
  ]);
  expect(partsText(view)).toBe("Your parts:\nDelegation dlg_0_1: deleted.\nDelegation dlg_0_2: completed.");
});
