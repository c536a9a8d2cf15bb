/**
 * Time zones by their IANA names, with the rules that Node brings. Limit: an offset is found by formatting, which takes
 * some microseconds, so formats are kept.
 */
import { LRUCache } from "lru-cache";
import { Closest } from "../similar.ts";

/** A format takes about 50 kB. */
const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 50 });
const WEEK = 7 * 86_400_000;

function formatOf(zone: string): Intl.DateTimeFormat {
  const kept = formats.get(zone);
  if (kept) return kept;
  const made = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  formats.set(zone, made);
  return made;
}

/** Whether it is the name of a zone; `+02:00` is none, because it has no summer time. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    return formatOf(name) !== undefined;
  } catch {
    return false;
  }
}

/** What the zone's clocks are ahead of UTC at this instant, ms. */
export function offsetAt(zone: string, ms: number): number {
  const [, sign, hours, minutes = "0", seconds = "0"] =
    /GMT([+-])(\d\d):?(\d\d)?:?(\d\d)?$/.exec(formatOf(zone).format(ms)) ?? [];
  if (hours === undefined) return 0;
  const size = (Number(hours) * 60 + Number(minutes)) * 60_000 + Number(seconds) * 1_000;
  return sign === "-" ? -size : size;
}

/** The first instant after `from`, and not after `to`, at which the zone's clocks change; null: they do not. */
export function changeBetween(zone: string, from: number, to: number): number | null {
  for (let low = from; low < to; low += WEEK) {
    let high = Math.min(low + WEEK, to);
    const before = offsetAt(zone, low);
    if (offsetAt(zone, high) === before) continue;
    let least = low;
    while (high - least > 1) {
      const middle = Math.floor((least + high) / 2);
      if (offsetAt(zone, middle) === before) least = middle;
      else high = middle;
    }
    return high;
  }
  return null;
}

/** The name that was meant: `berlin`, `Europe/Berln` and `europe berlin` are Europe/Berlin. */
export function nearestZone(name: string): string | undefined {
  const letters = lettersOf(name.slice(0, 64));
  const known = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const exact = known.find((zone) => lettersOf(zone) === letters || lettersOf(cityOf(zone)) === letters);
  if (exact !== undefined) return exact;
  const closest = new Closest(letters);
  const byLetters = new Map<string, string>();
  for (const zone of known) for (const text of [zone, cityOf(zone)]) byLetters.set(lettersOf(text), zone);
  for (const text of byLetters.keys()) closest.consider(text);
  return closest.best === undefined ? undefined : byLetters.get(closest.best);
}

const cityOf = (zone: string): string => zone.slice(zone.lastIndexOf("/") + 1);
const lettersOf = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, "");
