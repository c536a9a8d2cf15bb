/** Times that move on, by the words for which a saved view keeps them. */
export const MOMENTS = ["yesterday", "hour"] as const;
export type Moment = (typeof MOMENTS)[number];

/** In the reader's time zone: 0:00 of the day before. An hour ago: to the minute, so that the link stays the same. */
export function momentsAt(at: number): Readonly<Record<Moment, string>> {
  const yesterday = new Date(at);
  yesterday.setHours(0, 0, 0, 0);
  yesterday.setDate(yesterday.getDate() - 1);
  const hour = new Date(Math.floor(at / 60_000) * 60_000 - 3_600_000);
  return { yesterday: yesterday.toISOString(), hour: hour.toISOString() };
}
