/** The steps with rules: to create and revoke them, and to say whether an agent takes any. */
import * as fc from "fast-check";
import { expect } from "vitest";
import { askQuestion } from "./agent-steps.ts";
import { agentIndex, answerOnce, nameOf, pick, rarely, span, via } from "./delegator-steps.ts";
import type { ModelRule, Refusal } from "./item.ts";
import { count, type Model } from "./model.ts";
import { judge, type Real } from "./real.ts";
import { RULE_SHAPES, type RuleShape, stateOf } from "./rules.ts";
import { type Pick as LeasePick, mayPick, pickLease, type Step, step } from "./step.ts";
import type { ModelVotes } from "./votes.ts";

interface Create {
  readonly via: number;
  readonly agent: number;
  readonly by: string;
  readonly shape: RuleShape;
  readonly decision: "approve" | "deny";
  readonly seconds: number | undefined;
  readonly uses: number | undefined;
}

async function createRule(model: Model, real: Real, args: Create): Promise<void> {
  const { via, agent: index, by, shape, decision, seconds, uses } = args;
  const agent = nameOf(model, index);
  const [says] = RULE_SHAPES[shape];
  const body = { ...says, agent, decision, for_seconds: seconds, max_uses: uses };
  const answer = await real.call(via, by, "POST", "/v1/rules", body);
  // All walks share a broker, whose principals may have no more than so many.
  if (answer.body?.code === "limit_reached") return;
  const refusal: Refusal | null = model.agent(agent).person ? { code: "approval_required" } : null;
  judge(answer, refusal, 201);
  if (refusal) return;
  const expiresAt = seconds === undefined ? null : model.now + seconds;
  model.rules.push({
    ...{ id: answer.body.id, agent, by, shape, decision, expiresAt },
    ...{ maxUses: uses ?? null, uses: 0, revoked: false },
  });
}

const create = step<Create>({ name: "create rule", run: createRule });

/** A rule for the agent of a live lease, and then its question, twice. */
const askRuled = step<Pick<Create, "via" | "decision" | "uses"> & { pick: LeasePick; hold: boolean }>({
  name: "ask about what has a rule",
  check: mayPick,
  async run(model, real, { via, pick, decision, uses, hold }) {
    const { item } = pickLease(model, pick);
    const agent = model.agents.findIndex(({ name }) => name === item.target);
    await createRule(model, real, {
      via,
      agent,
      by: "operator",
      shape: "exact",
      decision,
      seconds: undefined,
      uses,
    });
    const question = {
      via,
      pick,
      by: "holder",
      kind: "input",
      shape: "approval",
      expires: undefined,
    } as const;
    await askQuestion(model, real, { ...question, again: false, hold });
    await askQuestion(model, real, { ...question, again: true, hold: true });
  },
});

interface Council {
  readonly via: number;
  readonly pick: LeasePick;
  readonly hold: boolean;
  readonly given: readonly { readonly by: string; readonly shape: "decision" | "edited" }[];
}

/** A question that two people must approve, who do so in turn, some again or something else; by chance it is too rare. */
const council = step<Council>({
  name: "council",
  check: mayPick,
  async run(model, real, { via, pick, hold, given }) {
    const { item } = pickLease(model, pick);
    const agent = model.agent(item.target);
    agent.votes = { needed: 2, notByDelegator: false };
    await real.set(agent);
    const question = {
      by: "holder",
      kind: "input",
      shape: "approval",
      expires: undefined,
      again: false,
    } as const;
    await askQuestion(model, real, { ...question, via, pick, hold });
    const common = { pick: { n: 0, fitting: true }, question: { n: 0, fitting: true }, key: null };
    for (const [turn, one] of given.entries()) {
      if (item.open?.question.shape !== "approval") return;
      await answerOnce(model, real, item, { ...common, ...one, via: via + turn, next: "nothing" });
    }
  },
});

const revoke = step<{ via: number; n: number; by: string }>({
  name: "revoke rule",
  check: (model) => model.rules.length > 0,
  async run(model, real, { via, n, by: who }) {
    const rule = model.rules[model.rules.length - 1 - (n % model.rules.length)];
    if (!rule) throw new RangeError("no rule");
    const by = who === "creator" ? rule.by : who;
    const isOwn = by === "operator" || by === rule.by;
    const refusal: Refusal | null = isOwn
      ? null
      : { code: by === "approver:ann" ? "forbidden" : "not_found" };
    judge(await real.call(via, by, "DELETE", `/v1/rules/${rule.id}`), refusal, 204);
    if (!refusal && stateOf(rule, model.now) === "active") count(model.made, "revoked a rule");
    if (!refusal) rule.revoked = true;
    await checkRule(model, real, rule);
  },
});

const approvals = step<{ agent: number; person: boolean }>({
  name: "approvals",
  async run(model, real, { agent, person }) {
    const found = model.agent(nameOf(model, agent));
    found.person = person;
    await real.set(found);
  },
});

const votes = step<{ agent: number; votes: ModelVotes }>({
  name: "votes",
  async run(model, real, { agent, votes: needs }) {
    const found = model.agent(nameOf(model, agent));
    found.votes = needs;
    await real.set(found);
  },
});

export async function checkRule(model: Model, real: Real, rule: ModelRule): Promise<void> {
  const { body } = await real.call(0, "operator", "GET", `/v1/rules/${rule.id}`);
  expect([body.id, body.uses, body.state]).toEqual([rule.id, rule.uses, stateOf(rule, model.now)]);
}

/** The steps, each with its weight. */
export const ruleSteps: readonly [number, fc.Arbitrary<Step>][] = [
  [
    4,
    fc
      .record({
        via,
        agent: agentIndex,
        by: fc.constantFrom("caller:alice", "caller:alice", "approver:ann", "operator", "caller:bob"),
        shape: fc.constantFrom<RuleShape[]>(
          "exact",
          "exact",
          "any",
          "any",
          "other",
          "less",
          "missing",
          "path",
        ),
        decision: fc.constantFrom("approve", "approve", "approve", "deny"),
        seconds: rarely(span(2)),
        uses: rarely(fc.constantFrom(1, 2)),
      })
      .map(create),
  ],
  [
    2,
    fc
      .record({
        via,
        n: fc.nat({ max: 20 }),
        by: fc.constantFrom("creator", "creator", "operator", "approver:ann", "caller:bob"),
      })
      .map(revoke),
  ],
  [
    4,
    fc
      .record({
        ...{ via, pick },
        decision: fc.constantFrom("approve", "approve", "deny"),
        uses: rarely(fc.constantFrom(1, 2)),
        hold: fc.boolean(),
      })
      .map(askRuled),
  ],
  [
    2,
    fc
      .record({
        agent: agentIndex,
        votes: fc.constantFrom<ModelVotes[]>(
          null,
          { needed: 2, notByDelegator: false },
          { needed: 2, notByDelegator: false },
          { needed: 2, notByDelegator: true },
          { needed: 1, notByDelegator: true },
          { needed: 3, notByDelegator: false },
        ),
      })
      .map(votes),
  ],
  [
    3,
    fc
      .record({
        ...{ via, pick, hold: fc.boolean() },
        given: fc.array(
          fc.record({
            by: fc.constantFrom("approver:ann", "approver:ann", "operator", "delegator"),
            shape: fc.constantFrom<("decision" | "edited")[]>("decision", "decision", "edited"),
          }),
          { minLength: 2, maxLength: 4 },
        ),
      })
      .map(council),
  ],
  [1, fc.record({ agent: agentIndex, person: fc.constantFrom(true, false, false) }).map(approvals)],
];
