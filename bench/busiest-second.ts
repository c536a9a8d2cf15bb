/** The most of these times, ms, within one second. They may be of several processes, in any order. */
export function busiestSecond(times: readonly number[]): number {
  const ascending = [...times].sort((a, b) => a - b);
  let first = 0;
  let most = 0;
  for (const [last, time] of ascending.entries()) {
    while (time - (ascending[first] ?? time) > 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
