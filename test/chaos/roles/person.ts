/**
 * People: they create rules and revoke them, some soon, and answer the questions that need two of them. A restarted process
 * does not revoke what its predecessor created.
 */
import * as z from "zod";
import { isBudgetQuestion } from "../../../src/schema/budget-question.ts";
import { ACTIONS, ARGUMENT_BELOW, COUNCIL } from "../setup.ts";
import { resubscribing, subscribing } from "./notices.ts";
import { type Part, shown } from "./part.ts";

export async function runPerson(part: Part): Promise<void> {
  const names = Object.keys(part.setup.tokens);
  const approvers = names.filter((name) => name.startsWith("approver:"));
  await Promise.all([
    ...names.map((as) => ruling(part, as)),
    ...approvers.map((as) => voting(part, as)),
    ...names.map((as) => subscribing(part, as)),
    ...approvers.map((as) => resubscribing(part, as)),
  ]);
}

const ruleSchema = z.looseObject({ id: z.string() });

/** Creates a rule, and revokes it after a while: at last before the work of the run ends. */
async function ruling(part: Part, as: string): Promise<void> {
  const { random, setup } = part;
  for (let n = 0; !part.quiet && !part.finished; n += 1) {
    await part.sleep(random.between(setup.ruleSeconds * 200, setup.ruleSeconds * 1_000));
    const bound = random.int(0, ARGUMENT_BELOW - 1);
    const argument = random.chance(0.5) ? { minimum: bound } : { maximum: bound };
    const decision = random.chance(0.75) ? "approve" : "deny";
    const most = random.chance(0.5) ? random.int(1, 3) : undefined;
    const pattern = random.pick([...ACTIONS, "files.*", "*"]);
    const target = random.pick([...setup.agents, COUNCIL]);
    const body = {
      ...{ agent: target, action: pattern, decision, arguments: [{ name: "n", ...argument }] },
      ...(most !== undefined && { max_uses: most }),
      ...(random.chance(0.3) && { for_seconds: random.int(1, 10) }),
    };
    const made = await part.insist(
      "create_rule",
      { target, pattern, decision, ...argument, ...(most !== undefined && { most }) },
      { as, path: "/v1/rules", headers: { "idempotency-key": `rule-${setup.life}-${n}` }, body },
      (answer) => ({ rule: ruleSchema.parse(answer).id, to_ms: Date.now() }),
    );
    if (made.phase !== "ok" || random.chance(0.15)) continue;
    const rule = ruleSchema.parse(made.body).id;
    await part.sleep(random.between(100, setup.ruleSeconds * 1_500));
    const request = { as, method: "DELETE", path: `/v1/rules/${rule}` };
    await part.insist("revoke_rule", { rule, from_ms: Date.now() }, request, () => ({ to_ms: Date.now() }));
  }
}

const openSchema = z.object({
  delegations: z.array(
    z.looseObject({
      id: z.string(),
      interrupt: z
        .looseObject({
          id: z.string(),
          requests: z.array(z.looseObject({ request_id: z.string(), edit: z.boolean().optional() })),
          votes: z
            .looseObject({
              answers: z.record(z.string(), z.looseObject({ data: z.unknown().optional() })).optional(),
            })
            .optional(),
        })
        .nullable()
        .optional(),
    }),
  ),
});
type Open = z.infer<typeof openSchema>["delegations"][number]["interrupt"];

/** Looks for open questions, and says something to each, time and again. */
async function voting(part: Part, as: string): Promise<void> {
  while (!part.finished) {
    await part.sleep(part.random.between(150, 700));
    const path = `/v1/delegations?state=input_required&target=${COUNCIL}&limit=20`;
    const { phase, body } = await part.send({ as, method: "GET", path });
    if (phase !== "ok") continue;
    for (const { id, interrupt } of openSchema.parse(body).delegations) {
      if (interrupt && !isBudgetQuestion(interrupt.id) && part.random.chance(0.7))
        await vote(part, as, id, interrupt);
    }
  }
}

/** Agrees, mostly with what others approved; or edits; or denies. */
async function vote(part: Part, as: string, id: string, open: NonNullable<Open>): Promise<void> {
  const { random } = part;
  const decision = random.chance(0.1) ? "deny" : "approve";
  const isEdit = decision === "approve" && random.chance(0.15);
  const agrees = decision === "approve" && random.chance(0.8);
  const answers = Object.fromEntries(
    open.requests.map(({ request_id, edit }) => {
      const before = open.votes?.answers?.[request_id]?.data;
      const edited = isEdit && edit === true ? { n: ARGUMENT_BELOW + random.int(0, 1) } : undefined;
      const data = edited ?? (agrees ? before : undefined);
      // Each person's own words, so that nobody's answer is taken for a repeat of another's.
      return [request_id, { decision, text: `says ${as}`, ...(data !== undefined && { data }) }];
    }),
  );
  const request = { as, path: `/v1/delegations/${id}/answer`, body: { interrupt_id: open.id, answers } };
  await part.insist("answer", { id, decision, asked: open.id }, request, shown);
}
