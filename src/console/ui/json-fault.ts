/** Finds the first fault in a text that should be JSON. Browsers explain it in different words, and some without its place. */

export interface JsonFault {
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly why: string;
}

const SPACE = /[\t\n\r ]*/y;
const STRING = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/uy;
const OTHER_VALUE = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)(?![\w.+-])/y;

const NO_VALUE = "a value is missing; text needs double quotes";
const NO_NAME = "a name in double quotes is missing";
const NO_COLON = "a colon is missing";
const AFTER_END = "the value ends before this";
const BROKEN_STRING = "this text has no closing double quote, or a \\ that JSON does not know";

/** Null if the text is JSON. */
export function jsonFault(text: string): JsonFault | null {
  try {
    JSON.parse(text);
    return null;
  } catch {
    const { at, why } = scan(text);
    const lines = text.slice(0, at).split("\n");
    return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, why };
  }
}

/** Reads to the first fault. Returns its index in the text, and the reason. */
function scan(text: string): { readonly at: number; readonly why: string } {
  let at = 0;
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const fits = pattern.test(text);
    if (fits) at = pattern.lastIndex;
    return fits;
  };
  const takeChar = (char: string): boolean => {
    take(SPACE);
    if (text[at] !== char) return false;
    at += 1;
    return true;
  };
  const noString = (why: string) => ({ at, why: text[at] === '"' ? BROKEN_STRING : why });
  /** The closing brackets of the open objects and arrays, the innermost last. */
  const closing: string[] = [];
  /** Takes the name of a member and its colon. Returns the fault, or null. */
  const takeName = () => {
    take(SPACE);
    if (!take(STRING)) return noString(NO_NAME);
    return takeChar(":") ? null : { at, why: NO_COLON };
  };
  for (;;) {
    if (takeChar("{")) {
      if (!takeChar("}")) {
        closing.push("}");
        const fault = takeName();
        if (fault) return fault;
        continue;
      }
    } else if (takeChar("[")) {
      if (!takeChar("]")) {
        closing.push("]");
        continue;
      }
    } else if (!take(STRING) && !take(OTHER_VALUE)) return noString(NO_VALUE);
    // The value ends here. Closing brackets may follow, which end the values around it.
    let close = closing.at(-1);
    while (close !== undefined && takeChar(close)) {
      closing.pop();
      close = closing.at(-1);
    }
    take(SPACE);
    if (close === undefined) return { at, why: AFTER_END };
    if (!takeChar(",")) return { at, why: `a comma or ${close} is missing` };
    const fault = close === "}" ? takeName() : null;
    if (fault) return fault;
  }
}
