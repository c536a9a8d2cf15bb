/** Who was notified of a question, in words. */
import { durationText } from "../util/duration-text.ts";
import type { SettledQuestion } from "./answered.ts";

type Told = NonNullable<SettledQuestion["told"]>;

interface Notified {
  readonly person: string;
  /** Each kind of channel once, with the first time that it reached the person. */
  readonly by: ReadonlyMap<string, string>;
}

/** Of a question, the broker notes the newest so many notifications. */
export const MOST_TOLD = 20;

/** Of the people that were notified, where a text is short. */
const NAMED = 5;

/** Each person once, who was notified first comes first. `told` has the newest first. */
export function notifiedPeople(told: Told): readonly Notified[] {
  const people = new Map<string, Map<string, string>>();
  for (const { person, channel, at } of told.toReversed()) {
    const by = people.get(person) ?? new Map<string, string>();
    people.set(person, by.has(channel) ? by : by.set(channel, at));
  }
  return [...people].map(([person, by]) => ({ person, by }));
}

/**
 * `approver:ann by ntfy, email; approver:bob by slack; and 2 more`; empty: nobody. `named`: how many people it names. With
 * as many notifications as the broker notes, there may have been more.
 */
export function notifiedText(
  told: Told,
  {
    nameOf = (person) => person,
    named = NAMED,
  }: { nameOf?: (person: string) => string; named?: number } = {},
): string {
  const people = notifiedPeople(told);
  const texts = people
    .slice(0, named)
    .map(({ person, by }) => `${nameOf(person)} by ${[...by.keys()].join(", ").replaceAll("_", " ")}`);
  const more = people.length - texts.length;
  const atLeast = told.length === MOST_TOLD ? "at least " : "";
  return [...texts, ...(more > 0 ? [`and ${atLeast}${more} more`] : [])].join("; ");
}

export interface Unanswered {
  /** The deadline of the delegation passed, not only that of the question. */
  readonly isDeadline: boolean;
  /** How long it was open. */
  readonly open_ms: number;
  /** Of a question that needs approvals: how many, and how many there were. */
  readonly needed?: number | undefined;
  readonly given?: number | undefined;
  /** Undefined: it is not known. */
  readonly told?: Told | undefined;
}

/** `Nobody answered the question within 2 h. Notified: approver:ann by ntfy.` */
export function unansweredText({ isDeadline, open_ms, needed, given = 0, told }: Unanswered): string {
  const missing =
    needed === undefined
      ? `nobody answered the question within ${durationText(open_ms)}`
      : `the question had ${given} of ${needed} approval${needed === 1 ? "" : "s"} within ${durationText(open_ms)}`;
  const what = isDeadline ? `The deadline passed, and ${missing}` : capitalized(missing);
  if (told === undefined) return `${what}.`;
  return told.length === 0
    ? `${what}. Nobody was notified of it.`
    : `${what}. Notified: ${notifiedText(told)}.`;
}

const capitalized = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
