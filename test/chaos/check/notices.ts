/**
 * Rules about notifications and the links in them. All subscriptions are about the council's work. Instants of events are by
 * Redis' clock, which is this machine's.
 */
import { isTerminal, stateSchema } from "../../../src/schema/delegation.ts";
import type { Call } from "../history.ts";
import type { RowOf } from "../rows.ts";
import { COUNCIL, EVERYTHING } from "../setup.ts";
import { type Facts, groupBy, type Violation } from "./facts.ts";

const keyOf = (...parts: readonly (string | undefined)[]): string => parts.join(" ");

/** Who has a subscription is notified of every end that came after it; a digest stands for as many as it says. */
export function untold({ history, calls, records }: Facts): Violation[] {
  const ended = new Set<string>();
  const inDigests = new Map<string, number>();
  for (const { subscription, id, type, count } of history.notices) {
    if (type === "ended") ended.add(keyOf(subscription, id));
    if (type === "digest") inDigests.set(subscription, (inDigests.get(subscription) ?? 0) + count);
  }
  const ends = [...records.values()].flatMap(({ id, target, delegator, state }) => {
    const at = history.stored.get(id)?.at(-1)?.at;
    return target === COUNCIL && at !== undefined && isTerminal(stateSchema.parse(state))
      ? [{ id, delegator, at }]
      : [];
  });
  const whole = calls("subscribe").filter(({ result, text }) => result === "ok" && text === EVERYTHING);
  return whole.flatMap(({ subscription, as = "", to_ms = 0, end }) => {
    const missing = ends.filter(
      ({ id, delegator, at }) => at > to_ms && mayKnow(as, delegator) && !ended.has(keyOf(subscription, id)),
    );
    const most = inDigests.get(subscription ?? "") ?? 0;
    return missing
      .slice(most)
      .map(({ id }) => ({ rule: "untold", id, what: `${as} was not notified of its end`, at: end }));
  });
}

const mayKnow = (as: string, delegator: string): boolean => !as.startsWith("caller:") || as === delegator;

/** Each thing is told under one id, in order, only to those who may know it, and signed. */
export function mistold({ history, records }: Facts): Violation[] {
  const first = new Map<string, RowOf<"notice">>();
  const isOver = new Map<string, RowOf<"notice">>();
  return history.notices.flatMap((notice) => {
    const { subscription, as, id, type, what, genuine } = notice;
    const found = (why: string, at?: number): Violation[] => [
      { rule: "mistold", id, what: `${as} was told of "${what}": ${why}`, ...(at !== undefined && { at }) },
    ];
    if (!genuine) return found("not signed as it has to be");
    if (type === "digest") return [];
    const { target, delegator } = records.get(id) ?? {};
    if (target !== undefined && (target !== COUNCIL || !mayKnow(as, delegator ?? "")))
      return found(`of ${delegator} and for ${target}`);
    const key = keyOf(subscription, id, what);
    const before = first.get(key);
    first.set(key, before ?? notice);
    if (before) return before.notice === notice.notice ? [] : found("twice, under two ids", before.t);
    const over = isOver.get(keyOf(subscription, id));
    if (type === "ended") isOver.set(keyOf(subscription, id), notice);
    return over ? found("after its end", over.t) : [];
  });
}

/**
 * A link answers once, in the name of its person, and nothing after its subscription is deleted; what it was told that it
 * answered, it did answer.
 */
export function deadLink(facts: Facts): Violation[] {
  const presses = facts.calls("press").filter(({ result }) => result !== "fail");
  const byLink = groupBy(presses, ({ link = "" }) => link);
  const deleted = new Map<string, number>();
  for (const { subscription = "", result, end } of facts.calls("unsubscribe"))
    if (result === "ok") deleted.set(subscription, Math.min(end, deleted.get(subscription) ?? end));
  const perLink = [...byLink.values()].flatMap((all) => wrongPresses(all, deleted));
  const answered = presses.filter(({ result }) => result === "ok").flatMap((call) => unanswered(facts, call));
  return [...perLink, ...answered, ...unpressed(facts, presses)];
}

const deadLinkAt = ({ id = "", as: _, ...call }: Call, what: string): Violation => ({
  ...{ rule: "dead-link", id, at: call.end },
  what: `the link of ${call.text} pressed with ${call.decision} ${what}`,
});

function wrongPresses(all: readonly Call[], deleted: ReadonlyMap<string, number>): Violation[] {
  const ok = all.filter(({ result }) => result === "ok");
  const [first] = ok;
  const other = ok.find(({ decision }) => decision !== first?.decision);
  const late = ok.filter(({ subscription = "", start, decision }) => {
    const end = deleted.get(subscription) ?? Number.POSITIVE_INFINITY;
    // The answer to an earlier press may have been lost: a repeat is told that it did.
    return start > end && !all.some((before) => before.decision === decision && before.start < end);
  });
  return [
    ...(other ? [deadLinkAt(other, "answered after another decision")] : []),
    ...late.map((call) => deadLinkAt(call, "answered after its subscription was deleted")),
  ];
}

/** The answers and votes to a question, by person, decision and the way that they came. */
function answersTo(
  { history }: Facts,
  id: string,
  asked: string,
): readonly { by: string; via: string; decision: string }[] {
  return (history.stored.get(id) ?? []).flatMap(({ answer }) =>
    answer?.id === asked
      ? [{ by: answer.by, via: answer.via, decision: answer.requests[0]?.decision ?? "" }]
      : [],
  );
}

/** Who has given the same approval in another way is told so, too. */
function unanswered(facts: Facts, call: Call): Violation[] {
  const { id = "", asked = "", text, decision } = call;
  const isThere = answersTo(facts, id, asked).some((one) => one.by === text && one.decision === decision);
  return isThere || !facts.records.has(id)
    ? []
    : [deadLinkAt(call, "was told that it answered, and did not")];
}

/** Every answer by a link is somebody's press of a link of theirs. */
function unpressed(facts: Facts, presses: readonly Call[]): Violation[] {
  const links = new Map<string, Set<string>>();
  for (const { id, asked, text, decision, link = "" } of presses) {
    const key = keyOf(id, asked, text, decision);
    links.set(key, (links.get(key) ?? new Set()).add(link));
  }
  return [...facts.history.stored].flatMap(([id, events]) => {
    const questions = new Set(events.flatMap(({ answer }) => answer?.id ?? []));
    return [...questions].flatMap((asked) => {
      const given = new Map<string, number>();
      for (const { by, via, decision } of answersTo(facts, id, asked)) {
        if (via !== "link") continue;
        const key = keyOf(id, asked, by, decision);
        given.set(key, (given.get(key) ?? 0) + 1);
      }
      return [...given].flatMap(([key, count]): Violation[] => {
        const pressed = links.get(key)?.size ?? 0;
        const what = `${count} answers by links (${key}), of which ${pressed} were pressed`;
        return count > pressed ? [{ rule: "dead-link", id, what }] : [];
      });
    });
  });
}
