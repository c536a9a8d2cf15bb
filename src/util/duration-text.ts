/** A duration in words. */

/** The units above a second, with their seconds. */
export const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;

/** All units of a duration: `350 ms`, `1.5 s`, `12 min 3 s`, `1 d 12 h`. From a minute on, whole seconds. */
export function durationText(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const tenths = Math.round(ms / 100) / 10;
  if (tenths < 60) return `${tenths} s`;
  let left = Math.floor(tenths);
  const parts: string[] = [];
  for (const [unit, size] of [...UNITS, ["s", 1] as const]) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count} ${unit}`);
    left -= count * size;
  }
  return parts.join(" ");
}
