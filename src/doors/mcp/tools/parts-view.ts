/**
 * The delegations that work waited for, as a model reads them. Limit: long answers are cut, and those that do not fit are
 * counted.
 */
import * as z from "zod";
import type { Awaited } from "../../../schema/await.ts";
import { counted } from "../../../schema/wording.ts";
import type { ByteBudget } from "./content.ts";
import { delegationViewSchema, toDelegationView, VIEW_BYTES, viewToText } from "./delegation-view.ts";

export const partsShape = {
  /** ended: enough of them ended. time_limit: the time was over before. */
  outcome: z.enum(["ended", "time_limit"]),
  /** The delegations, in the order of the call. check_task_status has more of one that shows its state only. */
  parts: z.array(delegationViewSchema),
  /** How many of them are not shown. */
  parts_omitted: z.int().optional(),
};
export const partsSchema = z.object(partsShape);
export type PartsView = z.infer<typeof partsSchema>;

/** The parts that fit, each with an equal share of the bytes, and at least as in a list. */
export function toPartsView({ outcome, children }: Awaited, budget: ByteBudget): PartsView {
  const share = Math.max(VIEW_BYTES.list, budget.left / children.length);
  const parts = budget.map(children, ({ delegation_id, state, delegation }) => {
    const view = delegation
      ? toDelegationView(delegation, share)
      : { delegation_id, state: state ?? "deleted" };
    budget.spend(JSON.stringify(view));
    return view;
  });
  const omitted = children.length - parts.length;
  return { outcome, parts, ...(omitted > 0 && { parts_omitted: omitted }) };
}

export function partsText({ outcome, parts, parts_omitted }: PartsView): string {
  const head = outcome === "ended" ? "Your parts:" : "The time limit was over before your parts ended:";
  const lines = parts.map((part) =>
    part.agent === undefined ? `Delegation ${part.delegation_id}: ${part.state}.` : viewToText(part),
  );
  const more =
    parts_omitted === undefined
      ? []
      : [`[${counted(parts_omitted, "more part")} not shown: call check_task_status with their ids]`];
  return [head, ...lines, ...more].join("\n");
}
