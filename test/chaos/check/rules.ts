/**
 * Rules about the broker's own rules, the standing approvals: what they answer, how often, and until when. Instants of events
 * are by Redis' clock, which is this machine's.
 */
import type { AskedAction, AskedQuestion, Call, FinalRule, ShownAnswer } from "../history.ts";
import type { Facts, Violation } from "./facts.ts";

/** A question that rules answered, or voted on. */
interface Ruled {
  readonly id: string;
  readonly target: string;
  readonly delegator: string;
  readonly asked: AskedQuestion;
  readonly askedAt: number;
  readonly answer: ShownAnswer;
  readonly at: number;
}

/** Every answer and vote by rules, with its question. */
function ruledAnswers({ history, records }: Facts): Ruled[] {
  return [...history.stored].flatMap(([id, events]) => {
    const { target = "", delegator = "" } = records.get(id) ?? {};
    let asked: AskedQuestion = { id: "", kind: "", actions: [] };
    let askedAt = 0;
    return events.flatMap((event): Ruled[] => {
      const { at = 0, answer } = event;
      if (event.asked) [asked, askedAt] = [event.asked, at];
      const isRuled = answer?.requests.some(({ rule }) => rule !== undefined) === true;
      return isRuled ? [{ id, target, delegator, asked, askedAt, answer, at }] : [];
    });
  });
}

const rulesOf = ({ answer }: Ruled): string[] => answer.requests.flatMap(({ rule }) => rule ?? []);

/** Once its revocation is answered, a rule answers nothing. */
export function revokedRule(facts: Facts): Violation[] {
  const revoked = new Map<string, Call>();
  for (const call of facts.calls("revoke_rule")) {
    const before = revoked.get(call.rule ?? "");
    if (call.result === "ok" && call.rule !== undefined && (before === undefined || call.end < before.end))
      revoked.set(call.rule, call);
  }
  return ruledAnswers(facts).flatMap((ruled) =>
    rulesOf(ruled).flatMap((rule) => {
      const call = revoked.get(rule);
      const late = ruled.at - (call?.to_ms ?? Number.POSITIVE_INFINITY);
      if (call === undefined || late <= 0) return [];
      const what = `${rule} answered ${late} ms after its revocation was acknowledged`;
      return [{ rule: "revoked-rule", id: ruled.id, what, at: call.end }];
    }),
  );
}

/** No rule decides more actions than it may, and its uses are those that the events name. */
export function overused(facts: Facts): Violation[] {
  const uses = new Map<string, number>();
  for (const ruled of ruledAnswers(facts))
    for (const rule of rulesOf(ruled)) uses.set(rule, (uses.get(rule) ?? 0) + 1);
  return facts.history.rules.flatMap(({ id, uses: shown, max_uses }) => {
    const count = uses.get(id) ?? 0;
    const found = (what: string): Violation[] => [{ rule: "overused", id, what }];
    if (count !== shown) return found(`it shows ${shown} uses, and the events name it ${count} times`);
    return count > (max_uses ?? count)
      ? found(`it decided ${count} actions, and may decide ${max_uses}`)
      : [];
  });
}

/** What answers is a rule that somebody created, that fits, and that no denial contradicts. */
export function misruled(facts: Facts): Violation[] {
  const known = new Map(facts.history.rules.map((rule) => [rule.id, rule]));
  const made = facts.calls("create_rule").filter(({ result, rule }) => result === "ok" && rule !== undefined);
  const created = new Map(made.map((call) => [call.rule, call]));
  const denials = denialsOf(facts, known, made);
  return ruledAnswers(facts).flatMap((ruled) => {
    const found = (what: string): Violation => ({ rule: "misruled", id: ruled.id, what });
    const whole = ruled.asked.id === ruled.answer.id ? [] : [found("rules answered what was not asked")];
    const each = ruled.answer.requests.flatMap(({ request, decision, rule: id = "" }): Violation[] => {
      const action = ruled.asked.actions.find((one) => one.request === request);
      const rule = known.get(id);
      // The broker drops rules that ended to make room for others.
      if (!rule && created.has(id)) return [];
      if (!rule) return [found(`${id} answered ${request}, and nobody created it`)];
      const why = misfit(rule, ruled, action, decision);
      return why === null ? [] : [found(`${id} answered ${request}: ${why}`)];
    });
    return [...whole, ...each, ...denied(ruled, denials).map(found)];
  });
}

function misfit(
  rule: FinalRule,
  { target, delegator, asked, answer, askedAt, at }: Ruled,
  action: AskedAction | undefined,
  decision: string | undefined,
): string | null {
  if (asked.kind !== "input") return "it asked for a credential";
  if (action === undefined) return "it proposed no action";
  if (rule.agent !== target) return `it is for ${rule.agent}`;
  if (answer.via !== "rule" || answer.by !== rule.by)
    return `${answer.by} by ${answer.via} is not ${rule.by}`;
  if (decision !== rule.decision) return `it says ${rule.decision}, and ${decision} was answered`;
  if (rule.by.startsWith("caller:") && rule.by !== delegator) return "it is for other delegators";
  if (!fits(rule, action)) return `it does not fit ${action.name} ${JSON.stringify(action.arguments)}`;
  if (askedAt < rule.created) return "it was created later";
  return rule.expires !== null && at >= rule.expires ? "it had expired" : null;
}

function fits(
  { action: pattern, arguments: tests, only_these_arguments }: FinalRule,
  { name, arguments: given }: AskedAction,
): boolean {
  const isNamed = pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
  const names = tests.map((test) => test.name);
  const isOther = only_these_arguments && Object.keys(given).some((one) => !names.includes(one));
  return (
    isNamed &&
    !isOther &&
    tests.every(
      ({ name: argument = "", minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }) => {
        const value = given[argument];
        return typeof value === "number" && value >= minimum && value <= maximum;
      },
    )
  );
}

/** A denial that certainly held from and to these instants, ms. */
interface Denial {
  readonly rule: FinalRule;
  readonly from: number;
  readonly to: number;
}

/** Those without a number of uses. */
function denialsOf({ calls }: Facts, known: ReadonlyMap<string, FinalRule>, made: readonly Call[]): Denial[] {
  const revoked = new Map<string, number>();
  for (const { rule = "", from_ms = 0 } of calls("revoke_rule"))
    revoked.set(rule, Math.min(from_ms, revoked.get(rule) ?? from_ms));
  return made.flatMap(({ rule: id = "", to_ms: from = Number.POSITIVE_INFINITY }) => {
    const rule = known.get(id);
    if (rule?.decision !== "deny" || rule.max_uses !== null) return [];
    return [
      {
        rule,
        from,
        to: Math.min(revoked.get(id) ?? Number.POSITIVE_INFINITY, rule.expires ?? Number.POSITIVE_INFINITY),
      },
    ];
  });
}

/** A denial wins over every approval of the same action; a question may propose several. */
function denied(ruled: Ruled, denials: readonly Denial[]): string[] {
  const isApproved = ({ request }: AskedAction): boolean =>
    ruled.answer.requests.some((one) => one.request === request && one.decision === "approve");
  const approved = ruled.asked.actions.filter(isApproved);
  return denials.flatMap(({ rule, from, to }) => {
    const isFor =
      rule.agent === ruled.target && (!rule.by.startsWith("caller:") || rule.by === ruled.delegator);
    const holds = from < ruled.askedAt && ruled.at < to;
    if (!isFor || !holds || !approved.some((action) => fits(rule, action))) return [];
    return [`it was approved by rules, and ${rule.id} denies it`];
  });
}
