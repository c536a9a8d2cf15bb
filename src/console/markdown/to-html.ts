/**
 * Markdown as HTML, within limits that a page can show at once. HTML within the text is shown as text, and pictures as
 * their address. Limit: the time is not bounded, because some texts take the parser minutes; run it in a worker.
 */
import { Marked } from "marked";

/** For all texts of one message or artifact together. */
export const MAX = { characters: 100_000, elements: 5_000, depth: 50 } as const;

/** The cost of a text besides its elements. */
const PER_TEXT = 20;

/** The HTML, or why there is none. */
export type Formatted = { readonly html: string } | { readonly why: string };

const WHY = {
  characters: `Shown as text, because more than ${MAX.characters.toLocaleString("en")} characters are not formatted.`,
  elements: "Shown as text, because it has too many lines, cells or links to be formatted.",
  depth: `Shown as text, because it is nested more than ${MAX.depth} levels deep.`,
  failed: "Shown as text, because it cannot be formatted.",
} as const;

/** The page has headings of its own above these. */
const FIRST_LEVEL = 3;

class TooLarge extends Error {}

/** Throws if the amount, with those before it, exceeds the limit. */
function counter(limit: number): (amount: number) => void {
  let left = limit;
  return (amount) => {
    if (amount > left) throw new TooLarge();
    left -= amount;
  };
}

/** The results of the texts, in their order. */
export function* toHtml(texts: readonly string[]): Generator<Formatted, void> {
  const countCharacters = counter(MAX.characters);
  const countElements = counter(MAX.elements);
  for (const text of texts) {
    try {
      countCharacters(text.length);
    } catch {
      yield { why: WHY.characters };
      continue;
    }
    try {
      const html = parser().parse(text, { async: false });
      const { elements, depth } = sizeOf(html);
      countElements(elements + PER_TEXT);
      yield depth > MAX.depth ? { why: WHY.depth } : { html };
    } catch (error) {
      // Text that is nested thousands of levels deep exhausts the stack.
      const isDeep = error instanceof RangeError;
      yield { why: error instanceof TooLarge ? WHY.elements : isDeep ? WHY.depth : WHY.failed };
    }
  }
}

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** For one text. What can grow far beyond the length of the text is counted before memory is spent on it. */
function parser(): Marked {
  const countCells = counter(MAX.elements);
  const countAddresses = counter(10 * MAX.characters);
  return new Marked({
    breaks: true,
    tokenizer: {
      // The parser fills up every row of a table that is shorter than its head.
      table(source) {
        const [, head = "", , rows = ""] = this.rules.block.table.exec(source) ?? [];
        countCells(head.split("|").length * rows.split("\n").length);
        return false;
      },
    },
    renderer: {
      html: ({ text }) => escaped(text),
      image: ({ raw }) => escaped(raw),
      checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
      heading({ tokens, depth }) {
        const level = Math.min(depth + FIRST_LEVEL - 1, 6);
        return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
      },
      // Many short links may refer to one long address.
      link({ href, title }) {
        countAddresses(href.length + (title?.length ?? 0));
        return false;
      },
    },
  });
}

const EMPTY_TAGS = ["br", "hr"];

/** The number of elements, and how deep they are nested. */
function sizeOf(html: string): { readonly elements: number; readonly depth: number } {
  let elements = 0;
  let open = 0;
  let depth = 0;
  for (const [, slash, tag = ""] of html.matchAll(/<(\/?)([a-z]+)/g)) {
    if (slash === "/") open -= 1;
    else {
      elements += 1;
      if (!EMPTY_TAGS.includes(tag)) open += 1;
      depth = Math.max(depth, open);
    }
  }
  return { elements, depth };
}
