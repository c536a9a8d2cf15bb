/**
 * How the figures are stored: a small hash for each subject and each bucket of time. A subject is `all`,
 * `target:<agent>` or `delegator:<principal>`.
 */
import { LIMITS } from "../../schema/limits.ts";
import type { StatsPeriod } from "../../schema/stats.ts";

export type Subject = "all" | `target:${string}` | `delegator:${string}`;

export interface Resolution {
  readonly seconds: number;
  /** How many buckets are shown. */
  readonly buckets: number;
}

export const RESOLUTIONS: Readonly<Record<StatsPeriod, Resolution>> = {
  hour: { seconds: 60, buckets: 60 },
  day: { seconds: 900, buckets: 96 },
};

/** A bucket outlives the time in which it is shown, because the gateways' clocks and Redis' may differ. */
export const keptMs = ({ seconds, buckets }: Resolution): number => (buckets + 2) * seconds * 1000;

export const slotOf = (ms: number, { seconds }: Resolution): number => Math.floor(ms / 1000 / seconds);

/** Upper bounds of the classes in which durations are counted, s; one more class has everything above. */
const BOUNDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
export const CLASSES = BOUNDS.length + 1;

/** The class of a duration: the number in its field's name. */
export function classOf(ms: number): number {
  const found = BOUNDS.findIndex((bound) => ms <= bound * 1000);
  return found < 0 ? BOUNDS.length : found;
}

/** The duration, s, that this share of them did not exceed. Assumes that durations spread evenly within a class. */
export function percentile(counts: readonly number[], share: number): number {
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && before + count >= wanted) {
      const from = BOUNDS[index - 1] ?? 0;
      const to = BOUNDS[index] ?? from;
      return Math.round((from + (to - from) * ((wanted - before) / count)) * 1000) / 1000;
    }
    before += count;
  }
  return BOUNDS.at(-1) ?? 0;
}

/** Fields that count; those of durations end in the number of their class. Short names keep the hash compact. */
export const FIELD = {
  sent: "s",
  failed: "f",
  rejected: "r",
  canceled: "x",
  lease: (index: number) => `l${index}`,
  answer: (index: number) => `a${index}`,
} as const;

/** Fields that add up what was used. */
export const USED = {
  input_tokens: "ti",
  output_tokens: "to",
  cached_tokens: "tc",
  reasoning_tokens: "tr",
} as const;
/** The cost in each currency: one field for each of the first currencies. Agents choose them, so others are dropped. */
export const COST_PREFIX = "c:";
export const MAX_CURRENCIES = 4;

/** Fields that keep the greatest sample. */
export const GAUGE = { waiting: "w", working: "k", oldest: "o" } as const;

/** Failures by code: one field for each of the first codes, and one for all others. */
export const CODE_PREFIX = "e:";
export const MAX_CODES = LIMITS.stats_codes.value;
/** With a longer field, Redis would not keep the hash compact. */
const SHORT = /^[a-z][a-z0-9_]{0,60}$/;
/** Empty: counted with the others. */
export const storedCode = (code: string): string => (SHORT.test(code) ? code : "");
