/**
 * Numbers of JSON text that JavaScript keeps. It reads each number as a double; a number is exact if the double, printed
 * in its shortest form or with 17 digits, as other languages print it, is the same decimal value. `1.0`, `1e2`, `-0`,
 * `0.1` and `0.10000000000000001` are exact. `9007199254740993`, `1e400` and a decimal with more digits than a double has
 * are not.
 */
import {
  closes,
  digitOf,
  endOfNumber,
  endOfString,
  isComma,
  isDigit,
  isExponent,
  isQuote,
  opens,
  startsNumber,
} from "../util/json-scan.ts";
import { shownName } from "./text.ts";

/** A double has 15 digits at least, if it is not close to the limits of its exponent. */
const SHORT_CHARS = 15;
/** With so many digits, every double is printed as itself alone: `%.17g` in C. */
const MAX_DIGITS = 17;
const SMALL_EXPONENT = 280;
const NEAR_ZERO = 1e-280;

/** Whether the number between the two indexes is exact. Cheap for short numbers, which nearly all are. */
export function isExactNumber(text: string, start: number, end: number): boolean {
  if (end - start <= SHORT_CHARS && exponentOf(text, start, end) <= SMALL_EXPONENT) return true;
  const written = text.slice(start, end);
  const read = Number(written);
  // Not a number at all: the parser refuses it.
  if (Number.isNaN(read)) return true;
  if (!Number.isFinite(read)) return false;
  if (end - start <= SHORT_CHARS && Math.abs(read) > NEAR_ZERO) return true;
  const printed = String(read);
  if (printed === written) return true;
  const decimal = decimalOf(written);
  if (decimal === decimalOf(printed)) return true;
  // A plain integer may be an id, so it must come back digit by digit, and it comes back in the shortest form.
  return /[.eE]/.test(written) && decimal === decimalOf(read.toPrecision(MAX_DIGITS));
}

/** Without its sign; 0 if there is none. */
function exponentOf(text: string, start: number, end: number): number {
  let exponent = -1;
  for (let i = start; i < end; i += 1) {
    const char = text.charCodeAt(i);
    if (isExponent(char)) exponent = 0;
    else if (exponent >= 0 && isDigit(char)) exponent = exponent * 10 + digitOf(char);
  }
  return Math.max(0, exponent);
}

/** A canonical form: the significant digits, and the power of ten of the last one. */
function decimalOf(number: string): string {
  const [mantissa = "", exponent = "0"] = number.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace(/^[-+]/, "").split(".");
  const digits = whole + fraction;
  let first = 0;
  while (digits[first] === "0") first += 1;
  let end = digits.length;
  while (end > first && digits[end - 1] === "0") end -= 1;
  if (first === end) return "0";
  const power = Number(exponent) - fraction.length + (digits.length - end);
  return `${mantissa.startsWith("-") ? "-" : ""}${digits.slice(first, end)}e${power}`;
}

/** An object or array that the scan is in, and the member or element. */
interface Level {
  readonly isArray: boolean;
  name: string;
  index: number;
}

/** The paths of the numbers of JSON text that are not exact, at most `max`; long names are cut. */
export function inexactNumberPaths(json: string, max: number): string[] {
  const found: string[] = [];
  const levels: Level[] = [];
  for (let i = 0; i < json.length && found.length < max; i += 1) {
    const char = json.charCodeAt(i);
    const level = levels.at(-1);
    if (isQuote(char)) {
      const close = endOfString(json, i);
      if (close === -1) break;
      // The last string before a value is the name of its member.
      if (level?.isArray === false) level.name = json.slice(i, close + 1);
      i = close;
    } else if (opens(char)) {
      levels.push({ isArray: json[i] === "[", name: '""', index: 0 });
    } else if (closes(char)) {
      levels.pop();
    } else if (isComma(char) && level) {
      level.index += 1;
    } else if (startsNumber(char)) {
      const end = endOfNumber(json, i);
      if (!isExactNumber(json, i, end)) found.push(levels.map(nameOf).join("."));
      i = end - 1;
    }
  }
  return found;
}

const nameOf = ({ isArray, name, index }: Level): string =>
  isArray ? String(index) : shownName(String(JSON.parse(name)));

export const INEXACT_NUMBER = "is a number that loses digits; send it as a text";

export class InexactNumberError extends Error {
  override readonly name = "InexactNumberError";
}

/** Parses a user's JSON. Throws a SyntaxError for text that is not JSON, and an InexactNumberError. */
export function parseExact(json: string): unknown {
  const value: unknown = JSON.parse(json);
  const [path] = inexactNumberPaths(json, 1);
  if (path === undefined) return value;
  throw new InexactNumberError(`${path === "" ? "it" : path} ${INEXACT_NUMBER}`);
}
