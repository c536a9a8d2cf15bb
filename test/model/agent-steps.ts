/**
 * The steps of agents in a walk, with leases that are live, lost or another agent's. Limit: no long polls; time is
 * the model's clock.
 */
import * as fc from "fast-check";
import { expect } from "vitest";
import { isTerminal } from "../../src/schema/delegation.ts";
import type { ShortAnswer } from "../support/keep-alive-client.ts";
import { isCounted } from "./budgets.ts";
import { agentIndex, nameOf, pick, rarely, span, via } from "./delegator-steps.ts";
import type { AskedQuestion, Held, Item, ModelRule, QuestionShape, Refusal, ReplyKind } from "./item.ts";
import { count, type Model } from "./model.ts";
import { compare, INTERRUPT_TTL, judge, LEASE_SECONDS, type Real } from "./real.ts";
import { ruledBy } from "./rules.ts";
import { isLiving, mayPick, type Pick, pickLease, type Step, step } from "./step.ts";
import { personOf } from "./votes.ts";

export const who = fc.oneof(
  { weight: 12, arbitrary: fc.constant("holder") },
  fc.constantFrom("operator", "other", "caller:alice"),
);

export function principal(model: Model, by: string, { item }: Held): string {
  if (by === "holder") return `agent:${item.target}`;
  if (by !== "other") return by;
  return `agent:${model.agents.find(({ name }) => name !== item.target)?.name}`;
}

/** Checks the order of the granted leases, and that no available work was left out. */
async function handed(
  model: Model,
  real: Real,
  agent: string,
  { leases }: ShortAnswer["body"],
  {
    max = 1,
    seconds = LEASE_SECONDS,
    confirm,
  }: { max?: number; seconds?: number; confirm?: number | undefined } = {},
): Promise<void> {
  const joined = await joinedNow(model, real, agent);
  model.look();
  for (const { lease_id, attempt, delegation } of leases) {
    joinIn(model, joined);
    const firsts = model.firsts(agent);
    const item = firsts.find(({ id }) => id === delegation.id);
    expect(firsts.map(({ id }) => id)).toContain(delegation.id);
    if (!item) return;
    model.grant(item, lease_id, seconds, confirm);
    expect(attempt).toBe(item.attempt);
    compare(item, delegation);
  }
  joinIn(model, joined);
  expect([...joined.keys()], "joined the line of their conversation without a reason").toEqual([]);
  if (leases.length < max) expect(model.firsts(agent)).toEqual([]);
}

/** Those that a worker would have got, but that joined the line of their conversation instead; each with the one before it. */
async function joinedNow(model: Model, real: Real, agent: string): Promise<Map<Item, string>> {
  const late = model.items.filter((item) => item.target === agent && model.joinsLate(item));
  const joined = new Map<Item, string>();
  for (const item of late) {
    const { behind } = (await real.read(item)).body;
    if (behind !== undefined) joined.set(item, behind);
  }
  return joined;
}

function joinIn(model: Model, joined: Map<Item, string>): void {
  for (let [item] = nextOf(model, joined); item; [item] = nextOf(model, joined)) {
    count(model.made, "joined late");
    model.join(item);
    joined.delete(item);
  }
}

const nextOf = (model: Model, joined: ReadonlyMap<Item, string>): Item[] =>
  [...joined].flatMap(([item, behind]) => (model.lastOf(item)?.id === behind ? [item] : []));

const lease = step<{
  via: number;
  agent: number;
  /** Choose an agent that has work, if there is one. */
  fitting: boolean;
  max: number;
  seconds: number | undefined;
  confirm: number | undefined;
}>({
  name: "lease",
  async run(model, real, { via, agent, fitting, max, seconds, confirm }) {
    const busy = model.agents.find((one) => model.firsts(one.name).length > 0);
    const name = (fitting ? busy?.name : undefined) ?? nameOf(model, agent);
    const answer = await real.call(via, `agent:${name}`, "POST", `/v1/agents/${name}/leases`, {
      wait_seconds: 0,
      max,
      lease_seconds: seconds,
      confirm_within_seconds: confirm,
    });
    judge(answer, null);
    await handed(model, real, name, answer.body, { max, confirm, ...(seconds !== undefined && { seconds }) });
  },
});

const beat = step<{
  via: number;
  pick: Pick;
  by: string;
  progress: boolean;
  seen: string | undefined;
  used: number | undefined;
}>({
  name: "heartbeat",
  check: mayPick,
  async run(model, real, { via, pick, by, progress, seen, used }) {
    const held = pickLease(model, pick);
    const { item } = held;
    const caller = principal(model, by, held);
    const refusal = model.mayWork(caller, held) ?? model.mayReport(item, used);
    const answer = await real.call(via, caller, "POST", `/v1/leases/${held.id}/heartbeat`, {
      ...(used !== undefined && { usage: { input_tokens: used } }),
      ...(progress && { progress: { message: "on it" } }),
      seen,
    });
    judge(answer, refusal);
    if (!refusal) {
      model.report(item, used, false);
      model.move(progress ? "progress" : "heartbeat", item);
      const upTo = seen === undefined ? -1 : item.unseen.indexOf(seen);
      item.unseen = item.unseen.slice(upTo + 1);
      expect(answer.body.state).toBe(item.state);
      expect(answer.body.messages.map((one: { messageId: string }) => one.messageId)).toEqual(item.unseen);
    }
    await real.check(item, model);
  },
});

const artifact = step<{ via: number; pick: Pick; by: string }>({
  name: "artifact",
  check: mayPick,
  async run(model, real, { via, pick, by }) {
    const held = pickLease(model, pick);
    const caller = principal(model, by, held);
    const refusal = model.mayWork(caller, held);
    const { item } = held;
    const body = { artifact: { artifactId: `a${item.artifacts}`, parts: [{ text: "part" }] } };
    judge(await real.call(via, caller, "POST", `/v1/leases/${held.id}/artifacts`, body), refusal);
    if (!refusal) {
      model.move("artifact", item);
      item.artifacts += 1;
      item.artifactFence = item.fence;
    }
    await real.check(item, model);
  },
});

const QUESTIONS = {
  named: { request_id: "r1", text: "Which?" },
  otherwise: { request_id: "r1", text: "Which one?" },
  unnamed: { text: "Which?" },
  unsaid: {},
  several: { requests: [{ request_id: "r1", text: "Which?" }, { request_id: "r2" }] },
  unnamedToo: { requests: [{ text: "Which?" }, { text: "Which?" }] },
  budget: { request_id: "budget", text: "More?" },
  approval: { request_id: "r3", text: "May I?", action: { name: "go", arguments: { at: 1 } }, edit: true },
} as const satisfies Record<QuestionShape, object>;

/**
 * Questions with the same key are the same: by their request ids and whether they ask for a credential, or by their kind,
 * their text and the number of answers before.
 */
function keyOf(kind: string, shape: QuestionShape, answered: number): string {
  const question = QUESTIONS[shape];
  const requests = "requests" in question ? question.requests : [question];
  const names = requests.map((one) => ("request_id" in one ? one.request_id : null));
  return JSON.stringify(names.includes(null) ? [kind, answered, requests] : [kind === "auth", names]);
}

interface Asking {
  readonly via: number;
  readonly pick: Pick;
  readonly by: string;
  readonly again: boolean;
  readonly kind: "input" | "auth";
  readonly shape: QuestionShape;
  readonly expires: number | undefined;
  readonly hold: boolean;
}

export async function askQuestion(
  model: Model,
  real: Real,
  { via, pick, by, expires, again, hold, ...asked }: Asking,
): Promise<void> {
  const likely = [hasOpenQuestion, hasAnswer, mayAskAgain];
  const before = again ? likely.map((fits) => model.leases.findLast(fits)).find(Boolean) : undefined;
  const held = before ?? pickLease(model, pick);
  const { item, fence } = held;
  // The agent does not ask the broker's question.
  const { kind, shape } = before?.item.questions.findLast((one) => one.shape !== "budget") ?? asked;
  const caller = principal(model, by, held);
  const body = { kind, ...QUESTIONS[shape] };
  const text = JSON.stringify(body);
  const key = keyOf(kind, shape, item.questions.filter((one) => one.answer !== null).length);
  const path = `/v1/leases/${held.id}/interrupt`;
  const answer = await real.call(via, caller, "POST", path, {
    ...body,
    expires_in_seconds: expires,
    hold,
  });

  const lost = model.mayWork(caller, held);
  const first = item.asked.get(fence);
  const isRepeat = first !== undefined && (first.key === key || first.body === text);
  const isHeld = !lost && item.open !== null;
  // By its body, because the key of an unnamed one depends on the answers before.
  const repeated = first?.answer && first.body === text ? first : undefined;
  const agent = model.agent(item.target);
  const takesRules = kind === "input" && shape === "approval" && !agent.person;
  const ruled = ruledBy(takesRules ? model.rules : [], agent, item, model.now);
  const known = knownOf(item, key, ruled) ?? repeated;
  const other: Refusal | null = isHeld && !isRepeat && !known ? { code: "wrong_state" } : null;
  const refusal = lost?.reason === "interrupted" && isRepeat ? null : (lost ?? other);
  judge(answer, refusal);
  if (lost && !refusal) {
    count(model.made, "asked again");
    expect(answer.body).toEqual({ interrupt_id: first?.id });
  } else if (isHeld && !known) {
    if (refusal) return real.check(item, model);
    expect(answer.body.interrupt_id).toBe(first?.id);
    if (hold) {
      count(model.made, "held again");
      model.extend(item);
    } else model.move("park_question", item);
    expect("held_until" in answer.body).toBe(hold);
  } else if (!lost && known) {
    count(model.made, "again with the answer");
    expect(answer.body.interrupt_id).toBe(known.id);
    expect(Object.keys(answer.body.answers)).toEqual(known.requests);
    if (known.ruled) count(model.made, "again with the answer of a rule");
    model.extend(item);
  } else if (!lost && ruled.kind === "approve" && (agent.votes?.needed ?? 1) > 1) {
    const question = { key, kind, shape, body: text, id: answer.body.interrupt_id };
    const isClosed = await votedByRules(real, model, held, question, { hold, expires, rules: ruled.rules });
    expect("answers" in answer.body).toBe(isClosed && hold);
  } else if (!lost && ruled.rules.length > 0) {
    const question = { key, kind, shape, body: text, id: answer.body.interrupt_id };
    expect("answers" in answer.body).toBe(hold);
    await answeredByRule(real, model, held, question, hold, ruled.rules);
  } else if (!lost) {
    const question = { key, kind, shape, body: text, id: answer.body.interrupt_id };
    expect("held_until" in answer.body).toBe(hold);
    await raised(real, model, held, question, hold, expires);
  }
  await real.check(item, model);
}

const interrupt = step<Asking>({ name: "interrupt", check: mayPick, run: askQuestion });

/**
 * The question as it was answered before. A failed attempt may leave a held one unanswered. What a person answered counts
 * first; then what a rule denied; what a rule approved counts as long as no denial applies or may.
 */
function knownOf(item: Item, key: string, ruled: ReturnType<typeof ruledBy>): AskedQuestion | undefined {
  const same = item.questions.filter((one) => one.key === key && one.answer !== null);
  const by = (decision: AskedQuestion["ruled"]) => same.findLast((one) => one.ruled === decision);
  const denied = ruled.hadAny ? by("deny") : undefined;
  const approved =
    ruled.hadAny && ruled.kind !== "deny" && ruled.kind !== "person" ? by("approve") : undefined;
  return same.find((one) => one.ruled === undefined) ?? denied ?? approved;
}

/** One of these rules answers at once: the question is asked and answered in one step. */
async function answeredByRule(
  real: Real,
  model: Model,
  { item, fence }: Held,
  asked: Omit<AskedQuestion, "requests" | "answer">,
  hold: boolean,
  rules: readonly ModelRule[],
): Promise<void> {
  const { body } = await real.call(1, "operator", "GET", `/v1/delegations/${item.id}`);
  const { metadata } = body.history.at(-1);
  const rule = rules.find(({ id }) => id === metadata.rule);
  if (!rule) throw new Error(`no rule that answers: ${JSON.stringify(metadata)}`);
  expect([metadata.decision, metadata.by]).toEqual([rule.decision, rule.by]);
  rule.uses += 1;
  count(model.made, rule.decision === "approve" ? "approved by a rule" : "denied by a rule");
  // As a person's answer would be, of which theirs is then a repeat.
  const text = JSON.stringify({ interrupt_id: asked.id, decision: rule.decision });
  const answer = { text, by: rule.by, key: null };
  const question: AskedQuestion = { ...asked, requests: ["r3"], answer, ruled: rule.decision };
  model.move(hold ? "hold" : "interrupt", item, { to: "input_required" });
  // A2A shows no question that is answered at once.
  item.unpushed.add(item.version);
  item.questions.push(question);
  item.asked.set(fence, question);
  model.move(hold ? "hand_over" : "answer", item);
  // It asks again for the answer.
  if (hold) model.extend(item);
  item.history += 2;
}

/** The question is asked, and these rules approve it in the names of their creators. Returns whether they suffice. */
async function votedByRules(
  real: Real,
  model: Model,
  held: Held,
  asked: Omit<AskedQuestion, "requests" | "answer" | "voted">,
  {
    hold,
    expires,
    rules,
  }: { readonly hold: boolean; readonly expires: number | undefined; readonly rules: readonly ModelRule[] },
): Promise<boolean> {
  const { item } = held;
  const { needed = 1 } = model.agent(item.target).votes ?? {};
  const casts = Math.min(needed, new Set(rules.map(({ by }) => personOf(by))).size);
  const { body } = await real.call(1, "operator", "GET", `/v1/delegations/${item.id}`);
  const cast: { readonly metadata: Record<string, string> }[] = body.history.slice(-casts);
  await raised(real, model, held, asked, hold, expires, ["r3"]);
  const text = JSON.stringify({ interrupt_id: asked.id, decision: "approve" });
  const voters: string[] = [];
  for (const { metadata } of cast) {
    const rule = rules.find(({ id }) => id === metadata.rule);
    if (!rule) throw new Error(`no rule that votes: ${JSON.stringify(metadata)}`);
    expect([metadata.decision, metadata.by]).toEqual(["approve", rule.by]);
    rule.uses += 1;
    voters.push(rule.by);
    item.history += 1;
    const isLast = voters.length === needed;
    if (isLast) model.move(hold ? "hand_over" : "answer", item);
    else model.move("vote", item);
    const question = item.questions.at(-1);
    if (!question) throw new Error("no question");
    if (isLast) question.answer = { text, by: rule.by, key: null };
    else {
      item.votes = { content: "decision", by: [...voters] };
      question.voted?.push(`${rule.by} ${text}`);
    }
  }
  expect(new Set(voters.map(personOf)).size).toBe(voters.length);
  count(model.made, "a vote by a rule");
  const isClosed = voters.length === needed;
  // It asks again for the answer.
  if (isClosed && hold) model.extend(item);
  return isClosed;
}

/** The agent has the work again with the answer to its last question. */
const hasAnswer = (held: Held): boolean =>
  isLiving(held) && (held.item.questions.at(-1)?.answer ?? null) !== null;

/** The lease is held while its question waits. */
const hasOpenQuestion = (held: Held): boolean => isLiving(held) && held.item.open !== null;

/** The lease ended with a question, or can repeat one that was asked before. */
const mayAskAgain = (held: Held): boolean =>
  held.item.questions.length > 0 && (isLiving(held) || held.item.asked.has(held.fence));

async function raised(
  real: Real,
  model: Model,
  { item, fence }: Held,
  asked: Omit<AskedQuestion, "requests" | "answer" | "voted">,
  hold: boolean,
  expires = INTERRUPT_TTL,
  /** Of a question that may be answered by now. */
  known?: readonly string[],
): Promise<void> {
  const answered = item.questions.filter(({ answer }) => answer !== null);
  expect(answered.map(({ id }) => id)).not.toContain(asked.id);
  const { body } = await real.call(0, "operator", "GET", `/v1/delegations/${item.id}`);
  const requests =
    known ?? (body.interrupt?.requests ?? []).map((one: { request_id: string }) => one.request_id);
  const question: AskedQuestion = { ...asked, requests, answer: null, voted: [] };
  model.move(hold ? "hold" : "interrupt", item, {
    to: asked.kind === "input" ? "input_required" : "auth_required",
  });
  // The delegation's deadline also ends a question.
  const lasts = Math.min(expires, item.deadlineAt - model.now);
  item.open = { question, lasts, expiresAt: model.now + lasts };
  item.questions.push(question);
  item.asked.set(fence, question);
  item.history += requests.length;
}

/** Takes the answer to a request of the newest question; `twice`: then another process of the worker tries to, too. */
const use = step<{ via: number; pick: Pick; by: string; key: string; twice: boolean }>({
  name: "use",
  check: mayPick,
  async run(model, real, { via, pick, by, key, twice }) {
    const held = (pick.fitting ? model.leases.findLast(hasAnswer) : undefined) ?? pickLease(model, pick);
    const caller = principal(model, by, held);
    await useOnce(model, real, via, held, caller, key);
    if (twice) await useOnce(model, real, via, held, caller, `${key}-other`);
  },
});

async function useOnce(
  model: Model,
  real: Real,
  via: number,
  held: Held,
  caller: string,
  key: string,
): Promise<void> {
  const { item, fence } = held;
  const question = item.questions.at(-1);
  const [request_id = "none"] = question?.requests ?? [];
  const interrupt_id = question?.id ?? "int_unknown";
  const body = { interrupt_id, request_id, use_key: key };
  const answer = await real.call(via, caller, "POST", `/v1/leases/${held.id}/use`, body);
  const lost = model.mayWork(caller, held);
  const open: Refusal | null = lost ? null : model.mayMove("use", item);
  const none: Refusal | null = (question?.answer ?? null) === null ? { code: "answer_unknown" } : null;
  const refusal = lost ?? open ?? none;
  judge(answer, refusal);
  if (!refusal) {
    const place = `${interrupt_id}:${request_id}`;
    const [before, now] = [item.used.get(place), `${fence} ${key}`];
    const isFirst = before === undefined || before === now;
    expect(answer.body.used).toBe(isFirst ? "now" : "before");
    expect("answer" in answer.body).toBe(isFirst);
    if (isFirst) {
      item.used.set(place, now);
      model.move("use", item);
    } else {
      count(model.made, "used before");
      model.extend(item);
    }
  }
  await real.check(item, model);
}

const release = step<{ via: number; pick: Pick; by: string; delay: number | undefined }>({
  name: "release",
  check: mayPick,
  async run(model, real, { via, pick, by, delay }) {
    const held = pickLease(model, pick);
    const caller = principal(model, by, held);
    const refusal = model.mayWork(caller, held);
    const path = `/v1/leases/${held.id}/release`;
    judge(await real.call(via, caller, "POST", path, { delay_seconds: delay }), refusal);
    if (!refusal && model.isHeld(held.item, true)) model.move("park_question", held.item);
    else if (!refusal) model.release(held.item, delay ?? 0);
    await real.check(held.item, model);
  },
});

const REPLIES = {
  completed: { state: "completed", text: "done" },
  otherwise: { state: "completed", text: "done otherwise" },
  failed: { state: "failed", error: { code: "broken", message: "no" } },
  retryable: { state: "failed", error: { code: "broken", message: "later", retryable: true } },
  rejected: { state: "rejected", text: "never", artifacts: [{ artifactId: "reason", parts: [] }] },
} as const satisfies Record<ReplyKind, object>;
const MOVE_OF = { completed: "complete", failed: "fail", rejected: "reject" } as const;

const reply = step<{
  via: number;
  pick: Pick;
  by: string;
  again: boolean;
  kind: ReplyKind;
  next: boolean;
  used: number | undefined;
}>({
  name: "reply",
  check: mayPick,
  async run(model, real, { via, pick, by, again, next: wanted, ...given }) {
    const closed = again
      ? model.leases.findLast(({ item, fence }) => item.closed?.fence === fence)
      : undefined;
    const held = closed ?? pickLease(model, pick);
    const { item, fence } = held;
    const kind = closed?.item.closed?.kind ?? given.kind;
    // Whether its parent is queued again, or its children are canceled, before the next lease is not certain.
    const hasChildren = item.children.some(({ state }) => !isTerminal(state));
    const isCountedAbove = item.parent !== null && isCounted(item.parent);
    const next =
      wanted && item.parent?.awaits?.children.has(item) !== true && !hasChildren && !isCountedAbove;
    const caller = principal(model, by, held);
    const used = closed?.item.closed ? closed.item.closed.used : given.used;
    const body = { ...REPLIES[kind], ...(used !== undefined && { usage: { input_tokens: used } }) };
    const answer = await real.call(via, caller, "POST", `/v1/leases/${held.id}/reply`, {
      ...body,
      ...(next && { next: { wait_seconds: 0 } }),
    });
    const lost = model.mayWork(caller, held);
    const isRepeat = item.closed?.fence === fence && item.closed.kind === kind && item.closed.used === used;
    const refusal = lost?.code === "lease_lost" && isRepeat ? null : (lost ?? model.mayReport(item, used));
    judge(answer, refusal);
    if (!refusal) {
      expect(answer.body.outcome).toBe(lost ? "duplicate" : "matched");
      if (lost) count(model.made, "replied again");
      else {
        model.report(item, used, true);
        if (kind === "retryable" && item.attempt < item.maxAttempts) model.retry(item);
        else finish(model, held, kind);
        item.closed = { fence, kind, used };
      }
      compare(item, answer.body.delegation);
      if (next) await handed(model, real, item.target, answer.body);
      else expect(answer.body.leases).toBeUndefined();
    }
    await real.check(item, model);
  },
});

function finish(model: Model, { item }: Held, kind: ReplyKind): void {
  const { state } = REPLIES[kind];
  const error = { completed: undefined, failed: "broken", rejected: "rejected" }[state];
  model.move(MOVE_OF[state], item, error === undefined ? {} : { error });
  if (state === "rejected") item.artifacts += 1;
}

const again = fc.constantFrom(true, false, false, false);
const tokens = fc.constantFrom(1, 3, 10);
const base = { via, pick, by: who };
const some = <T extends object>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(shape);

export const leases: fc.Arbitrary<Step> = some({
  via,
  agent: agentIndex,
  fitting: fc.constantFrom(true, true, false),
  max: fc.integer({ min: 1, max: 3 }),
  seconds: rarely(span(2)),
  confirm: rarely(span(1)),
}).map(lease);

/** The steps, each with its weight. */
export const agentSteps: readonly [number, fc.Arbitrary<Step>][] = [
  [12, leases],
  [
    6,
    some({
      ...base,
      progress: fc.boolean(),
      seen: fc.constantFrom(undefined, "m1", "m2", "m3"),
      used: fc.option(tokens, { nil: undefined, freq: 2 }),
    }).map(beat),
  ],
  [2, some(base).map(artifact)],
  [
    8,
    some({
      ...base,
      again,
      kind: fc.constantFrom("input", "auth"),
      shape: fc.constantFrom(
        "named",
        "named",
        "otherwise",
        "unnamed",
        "unsaid",
        "several",
        "unnamedToo",
        "approval",
      ),
      expires: rarely(span(2)),
      hold: fc.boolean(),
    }).map(interrupt),
  ],
  [3, some({ ...base, key: fc.constantFrom("k1", "k2"), twice: fc.boolean() }).map(use)],
  [3, some({ ...base, delay: rarely(span(1)) }).map(release)],
  [
    7,
    some({
      ...base,
      again,
      kind: fc.constantFrom("completed", "otherwise", "failed", "retryable", "retryable", "rejected"),
      next: fc.boolean(),
      used: rarely(tokens),
    }).map(reply),
  ],
];
