/** The place where a text stops being JSON, and the reason in words. The words of browsers differ, and some name no place. */

export interface JsonFault {
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly why: string;
}

const SPACE = /[\t\n\r ]*/y;
const STRING = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/uy;
const PLAIN = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)(?![\w.+-])/y;

const NO_VALUE = "a value is missing; text needs double quotes";
const NO_NAME = "a name in double quotes is missing";
const NO_COLON = "a colon is missing";
const MORE = "the value ends before this";
const BROKEN_TEXT = "this text has no closing double quote, or a \\ that JSON does not know";

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

/** Reads as far as the text is JSON. */
function scan(text: string): { readonly at: number; readonly why: string } {
  let at = 0;
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const isThere = pattern.test(text);
    if (isThere) at = pattern.lastIndex;
    return isThere;
  };
  const takeChar = (char: string): boolean => {
    take(SPACE);
    if (text[at] !== char) return false;
    at += 1;
    return true;
  };
  const noText = (why: string) => ({ at, why: text[at] === '"' ? BROKEN_TEXT : why });
  /** The closing brackets that are due, the innermost last. */
  const due: string[] = [];
  /** The name of a member and its colon; the place where they are not, if so. */
  const member = () => {
    take(SPACE);
    if (!take(STRING)) return noText(NO_NAME);
    return takeChar(":") ? null : { at, why: NO_COLON };
  };
  for (;;) {
    if (takeChar("{")) {
      if (!takeChar("}")) {
        due.push("}");
        const fault = member();
        if (fault) return fault;
        continue;
      }
    } else if (takeChar("[")) {
      if (!takeChar("]")) {
        due.push("]");
        continue;
      }
    } else if (!take(STRING) && !take(PLAIN)) return noText(NO_VALUE);
    // The value is over, and with it perhaps those around it.
    let close = due.at(-1);
    while (close !== undefined && takeChar(close)) {
      due.pop();
      close = due.at(-1);
    }
    take(SPACE);
    if (close === undefined) return { at, why: MORE };
    if (!takeChar(",")) return { at, why: `a comma or ${close} is missing` };
    const fault = close === "}" ? member() : null;
    if (fault) return fault;
  }
}
