/** Further rows below those that are in the data: somebody may use a list for hours. */
export const SPARE = 20;

/**
 * The rows of a list in use: each in its place, as it is now or was last, and below them what `appends` takes. What finds
 * no room below is among the `waiting`.
 */
export function keepPlaces<T>(
  drawn: readonly T[],
  items: readonly T[],
  keyOf: (item: T) => string,
  appends: (item: T) => boolean,
): { rows: readonly T[]; waiting: number } {
  const current = new Map(items.map((item) => [keyOf(item), item]));
  const kept = drawn.map((item) => {
    const key = keyOf(item);
    const now = current.get(key) ?? item;
    current.delete(key);
    return now;
  });
  const room = Math.max(0, items.length + SPARE - kept.length);
  const added = [...current.values()].filter(appends).slice(0, room);
  return { rows: [...kept, ...added], waiting: current.size - added.length };
}
