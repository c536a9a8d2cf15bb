/** Finds places in JSON text without parsing it. Each function takes linear time and does not recurse. */

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

export const opens = (char: number): boolean => char === 0x7b || char === 0x5b;
export const closes = (char: number): boolean => char === 0x7d || char === 0x5d;
export const isQuote = (char: number): boolean => char === QUOTE;
export const isComma = (char: number): boolean => char === COMMA;
export const isDigit = (char: number): boolean => char >= ZERO && char <= NINE;
export const digitOf = (char: number): number => char - ZERO;
const isSpace = (char: number): boolean => char === 0x20 || (char >= 0x09 && char <= 0x0d);

/** `E` or `e`. */
export const isExponent = (char: number): boolean => (char | 0x20) === 0x65;
export const startsNumber = (char: number): boolean => isDigit(char) || char === MINUS;

/** The index of the closing quote of the string that starts at `open`, or -1: an even number of backslashes precedes it. */
export function endOfString(text: string, open: number): number {
  for (let quote = text.indexOf('"', open + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let escapes = 0;
    while (text.charCodeAt(quote - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return quote;
  }
  return -1;
}

/** The index after the number that starts at `start`. */
export function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end += 1) {
    const char = text.charCodeAt(end);
    if (!isDigit(char) && char !== DOT && char !== PLUS && char !== MINUS && !isExponent(char)) break;
  }
  return end;
}

function afterSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

/** The index after the value that starts at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let i = start; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === QUOTE) {
      i = endOfString(text, i);
      if (i === -1) break;
      if (depth === 0) return i + 1;
    } else if (opens(char)) {
      depth += 1;
    } else if (closes(char)) {
      depth -= 1;
      if (depth === 0) return i + 1;
      if (depth < 0) return i;
    } else if (depth === 0 && (char === COMMA || isSpace(char))) {
      return i;
    }
  }
  return text.length;
}

/** Where the value of a member is: the index of its first character, and the one after its last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Where the values of these members of the object are, as JSON.parse reads them: of a member given twice, the second.
 * `names` have no characters that JSON escapes. Limit: of text that is not JSON it finds something or nothing.
 */
export function memberSpans(json: string, names: readonly string[], from = 0): Map<string, Span> {
  const found = new Map<string, Span>();
  let at = afterSpace(json, from);
  if (json[at] !== "{") return found;
  for (at = afterSpace(json, at + 1); json.charCodeAt(at) === QUOTE; ) {
    const close = endOfString(json, at);
    if (close === -1) break;
    const name = nameAt(json, at, close);
    at = afterSpace(json, close + 1);
    if (json.charCodeAt(at) !== COLON) break;
    const start = afterSpace(json, at + 1);
    const end = endOfValue(json, start);
    if (names.includes(name)) found.set(name, { start, end });
    at = afterSpace(json, end);
    if (json.charCodeAt(at) !== COMMA) break;
    at = afterSpace(json, at + 1);
  }
  return found;
}

/** Where the first elements of the array are. Limit: as that of {@link memberSpans}. */
export function elementSpans(json: string, most: number): Span[] {
  const found: Span[] = [];
  let at = afterSpace(json, 0);
  if (json[at] !== "[") return found;
  for (at = afterSpace(json, at + 1); at < json.length && json[at] !== "]"; at = afterSpace(json, at + 1)) {
    const end = endOfValue(json, at);
    found.push({ start: at, end });
    at = afterSpace(json, end);
    if (found.length === most) break;
    if (json.charCodeAt(at) !== COMMA) break;
  }
  return found;
}

/** A name may have any of its characters escaped. */
function nameAt(json: string, open: number, close: number): string {
  const written = json.slice(open + 1, close);
  if (!written.includes("\\")) return written;
  try {
    return String(JSON.parse(json.slice(open, close + 1)));
  } catch {
    return written;
  }
}
