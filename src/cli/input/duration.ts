/** Parses durations of options: `90s`, `30m`, `2h`, `3d`, or plain seconds. */
import { InvalidArgumentError } from "commander";

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** Returns seconds. */
export function duration(value: string): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(value) ?? [];
  const seconds = Number(digits) * SECONDS[unitOf(unit)];
  if (seconds > 0 && Number.isFinite(seconds)) return seconds;
  throw new InvalidArgumentError("It must be a duration, for example 90s, 30m, 2h or 3d.");
}

function unitOf(unit: string | undefined): keyof typeof SECONDS {
  return unit === "m" || unit === "h" || unit === "d" ? unit : "s";
}
