/** Who was notified of a question, by person. */
import type { SettledQuestion } from "./answered.ts";

type Told = NonNullable<SettledQuestion["told"]>;

interface Notified {
  readonly person: string;
  /** Each kind of channel once, with the first time that it reached the person. */
  readonly by: ReadonlyMap<string, string>;
}

/** Each person once, who was notified first comes first. `told` has the newest first. */
export function notifiedPeople(told: Told): readonly Notified[] {
  const people = new Map<string, Map<string, string>>();
  for (const { person, channel, at } of told.toReversed()) {
    const by = people.get(person) ?? new Map<string, string>();
    people.set(person, by.has(channel) ? by : by.set(channel, at));
  }
  return [...people].map(([person, by]) => ({ person, by }));
}
