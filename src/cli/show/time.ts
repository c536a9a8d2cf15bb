/** Instants for people: how long ago, or local time with its zone. */
import { localDateTime } from "../../util/local-time.ts";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** `45s`, `3m`, `2h`, `12d`: two units are never shown. */
export function ageText(instant: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(instant)) / 1000));
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 2 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  return seconds < 2 * DAY ? `${Math.floor(seconds / HOUR)}h` : `${Math.floor(seconds / DAY)}d`;
}

/** For a cell: `in 14h` or `2d ago`; with --wide the instant in local time. */
export function whenText(instant: string, wide: boolean, now = Date.now()): string {
  if (wide) return localTime(instant);
  const at = Date.parse(instant);
  return at > now ? `in ${ageText(new Date(now).toISOString(), at)}` : `${ageText(instant, now)} ago`;
}

/** `2026-01-31 09:00:00 +01:00` */
export function localTime(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return instant;
  const two = (number: number) => String(Math.trunc(number)).padStart(2, "0");
  const east = -at.getTimezoneOffset();
  const zone = `${east < 0 ? "-" : "+"}${two(Math.abs(east) / 60)}:${two(Math.abs(east) % 60)}`;
  return `${localDateTime(at)} ${east === 0 ? "UTC" : zone}`;
}
