/**
 * The tool that gives work back until parts of it have ended. Limit: nobody holds a lease meanwhile, so the work may return
 * to another worker of the agent.
 */
import * as z from "zod";
import { awaitChildren } from "../../../engine/leases/await-children.ts";
import { awaitedSchema, awaitRequestSchema } from "../../../schema/await.ts";
import { counted } from "../../../schema/wording.ts";
import { check } from "../../http/route.ts";
import { ByteBudget } from "./content.ts";
import { VIEW_BYTES } from "./delegation-view.ts";
import { partsShape, partsText, toPartsView } from "./parts-view.ts";
import { defineTool } from "./tool.ts";
import { WORKERS } from "./visibility.ts";
import { leaseIdInput } from "./worker-tools.ts";

export const partsTool = defineTool({
  name: "wait_for_parts",
  title: "Wait for parts of the work",
  description:
    "Wait until delegations that you made for this work have ended: those with its delegation_id as parent_id. This ends the lease, so that you can do other work: stop this work and call poll_inbox; the work returns with their answers in awaited. If enough of them had ended before, the call returns their answers at once and you keep the lease.",
  visibleTo: WORKERS,
  idempotent: true,
  input: {
    lease_id: leaseIdInput,
    ids: awaitRequestSchema.shape.children.describe("The delegation_ids to wait for, 1 to 1000."),
    until: awaitRequestSchema.shape.until.describe("How many of them must end: all, any, or a number."),
    time_limit_seconds: awaitRequestSchema.shape.time_limit_seconds.describe(
      "The work returns after this time at the latest. Default: at its deadline, where it fails.",
    ),
  },
  output: { waiting: z.boolean(), left: z.int(), expires_at: z.string(), ...partsShape },
  async handle({ broker, principal }, { lease_id: id, ids, ...terms }) {
    const request = check(awaitRequestSchema, { children: ids, ...terms }, "arguments");
    const { awaits, awaited } = await awaitChildren(broker, principal, id, request);
    if (awaited !== undefined) {
      const view = toPartsView(awaitedSchema.parse(JSON.parse(awaited)), new ByteBudget(VIEW_BYTES.full));
      const text = `You keep the lease, because enough of them had ended. ${partsText(view)}`;
      return { text, data: { waiting: false, ...view } };
    }
    const until = awaits ? ` until ${counted(awaits.left, "more delegation")} ended` : "";
    return {
      text: `The work waits${until}, and your lease ended. Call poll_inbox; the work returns with the answers.`,
      data: { waiting: true, ...(awaits && { left: awaits.left, expires_at: awaits.expires_at }) },
    };
  },
});
