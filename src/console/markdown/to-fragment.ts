/**
 * Markdown as elements. HTML within the text is shown as text, and pictures as their address: formatting loads nothing.
 * DOMPurify then keeps only the elements and attributes that are listed here, whatever the parser made of the text.
 */
import createPurify from "dompurify";
import { Marked } from "marked";

const TAGS = [
  ...["a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"],
  ...["strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
];

/** The page has headings of its own above these. */
const FIRST_LEVEL = 3;

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const marked = new Marked({
  breaks: true,
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ raw }) => escaped(raw),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    heading({ tokens, depth }) {
      const level = Math.min(depth + FIRST_LEVEL - 1, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
  },
});

/** A separate instance, so its hooks affect no other use of DOMPurify. */
const purify = createPurify(window);
purify.addHook("afterSanitizeAttributes", (element) => {
  if (!element.hasAttribute("href")) return;
  element.setAttribute("rel", "noreferrer noopener");
  element.setAttribute("target", "_blank");
});

export function toFragment(markdown: string): DocumentFragment {
  return purify.sanitize(marked.parse(markdown, { async: false }), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "start", "align"],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}
