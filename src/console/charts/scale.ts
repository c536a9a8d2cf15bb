/** Where the scale of a chart ends: a round value, not far above the highest one. */

/** Round times, s. */
export const TIMES: readonly number[] = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600],
  ...[2, 3, 6, 12, 24, 48].map((hours) => hours * 3600),
];

const STEPS = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The first of the round values that is not below `most`; without one, 1 to 10 times a power of ten. */
export function topOf(most: number, round: readonly number[] = []): number {
  if (most <= 0) return round[0] ?? 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const top = round.find((value) => value >= most);
  // Half a delegation is no mark of a scale.
  return (
    top ?? STEPS.map((step) => step * power).find((value) => value >= most && value % 1 === 0) ?? 10 * power
  );
}
