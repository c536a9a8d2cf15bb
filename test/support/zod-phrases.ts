/** The phrases of zod itself, of which none may reach anybody. */
const PHRASES =
  /\bInvalid (?:input|option|string|number|value|key|element|discriminator|[a-z0-9]+ (?:address|range)|URL|UUID|ISO|base64)|\bToo (?:small|big)\b|\bUnrecognized keys?\b|\bexpected (?:string|number|int|boolean|object|array|record|one of|date|")|received (?:undefined|null|string|number|boolean|object|array|NaN)/i;

/** The pattern of a schema is for programs. */
const PATTERN = /must match \//;

/** The phrase of zod in a text, with what is around it. */
export function zodPhraseIn(text: string): string | undefined {
  const found = PHRASES.exec(text) ?? PATTERN.exec(text);
  return found ? text.slice(Math.max(0, found.index - 80), found.index + 80) : undefined;
}
