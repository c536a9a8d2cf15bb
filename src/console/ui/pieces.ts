/** Finds the web addresses in plain text. */

const MAX_LINKS = 200;
/** In characters. */
const MAX_LENGTH = 2_000;

/** The characters of RFC 3986. */
const ADDRESS = /\bhttps?:\/\/[\w\-.~:/?#[\]@!$&'()*+,;=%]+/gi;
/** After an address, they belong to the sentence. */
const ENDS = ".,;:!?'*_~";
const CLOSES: Readonly<Record<string, string>> = { ")": "(", "]": "[" };

export interface Piece {
  readonly text: string;
  readonly isLink: boolean;
}

/** The text in pieces, in order. */
export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  let links = 0;
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    if (links === MAX_LINKS) break;
    if (found.length > MAX_LENGTH) continue;
    const address = withoutEnd(found);
    if (!isAddress(address, text.slice(index + found.length, index + found.length + 1))) continue;
    if (index > from) pieces.push({ text: text.slice(from, index), isLink: false });
    pieces.push({ text: address, isLink: true });
    from = index + address.length;
    links += 1;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isLink: false });
  return pieces;
}

/** Without the end of the sentence around it; a bracket that is opened in the address stays. */
function withoutEnd(found: string): string {
  const extra: Record<string, number> = {};
  for (const [close, open] of Object.entries(CLOSES))
    extra[close] = found.split(close).length - found.split(open).length;
  let end = found.length;
  for (; end > 0; end -= 1) {
    const last = found.charAt(end - 1);
    const left = extra[last] ?? 0;
    if (left > 0) extra[last] = left - 1;
    else if (!ENDS.includes(last)) break;
  }
  return found.slice(0, end);
}

/** Not one that goes on in other letters, nor one with a user's name or password, which may look like the host. */
function isAddress(address: string, next: string): boolean {
  if (/\p{Script=Latin}/u.test(next) || !URL.canParse(address)) return false;
  const { protocol, username, password } = new URL(address);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}
