import { isExactNumber } from "../../schema/exact-numbers.ts";

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

interface Limits {
  readonly isInteger: boolean;
  readonly min: number | undefined;
  readonly max: number | undefined;
}

/** The number that is typed, in the form of JSON; or why it is none. */
export function readNumber(
  typed: string,
  { isInteger, min, max }: Limits,
): number | { readonly why: string } {
  const text = typed.trim();
  if (text === "") return { why: "A number is missing." };
  if (!NUMBER.test(text)) return { why: "This is not a number, such as 12 or 0.5." };
  if (!isExactNumber(text, 0, text.length)) return { why: "This number has more digits than can be kept." };
  const number = Number(text);
  if (isInteger && !Number.isInteger(number)) return { why: "A whole number is needed." };
  if (min !== undefined && number < min) return { why: `At least ${min}.` };
  return max !== undefined && number > max ? { why: `At most ${max}.` } : number;
}
