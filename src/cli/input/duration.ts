/** Durations of options: `90s`, `30m`, `2h`, `3d`, `1h30m`, or plain seconds. */
import { InvalidArgumentError } from "commander";

const ONE_UNIT = /^(\d+(?:\.\d+)?)([smhd]?)$/;
const SEVERAL_UNITS = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
const SECONDS = new Map([
  ["m", 60],
  ["h", 3600],
  ["d", 86_400],
]);

/** Returns seconds. */
export function duration(value: string): number {
  const seconds = secondsIn(value);
  if (seconds !== undefined) return seconds;
  throw new InvalidArgumentError("It must be a duration, for example 90s, 30m, 1h30m or 3d.");
}

/** Undefined, if the text is no duration. */
export function secondsIn(text: string): number | undefined {
  const [, digits, unit = ""] = ONE_UNIT.exec(text) ?? [];
  const seconds = digits === undefined ? severalUnits(text) : Number(digits) * (SECONDS.get(unit) ?? 1);
  return seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}

function severalUnits(text: string): number {
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = (SEVERAL_UNITS.exec(text) ?? [])
    .slice(1)
    .map((digits = "0") => Number(digits));
  return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
}
