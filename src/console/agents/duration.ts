/** Durations in the units that people use, as two fields of a form: a number and its unit. */

/** In seconds. */
const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;
export type Unit = keyof typeof UNITS;
export const UNIT_NAMES = Object.keys(UNITS).filter((name): name is Unit => Object.hasOwn(UNITS, name));

/** In the largest unit of which it is a whole number: 5400 is 90 minutes. */
export function inUnits(seconds: number): { readonly number: number; readonly unit: Unit } {
  const unit = UNIT_NAMES.findLast((name) => seconds >= UNITS[name] && seconds % UNITS[name] === 0);
  return { number: seconds / UNITS[unit ?? "seconds"], unit: unit ?? "seconds" };
}

/** Thousandths do not come from the unit: 0.1 minutes are 6 seconds. */
export function toSeconds(number: number, unit: string): number {
  const found = UNIT_NAMES.find((name) => name === unit) ?? "seconds";
  return Math.round(number * UNITS[found] * 1000) / 1000;
}
