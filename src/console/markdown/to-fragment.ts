/** HTML of formatted text as elements: only those elements and attributes that are listed here, whatever the HTML has. */
import createPurify from "dompurify";

const TAGS = [
  ...["a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"],
  ...["strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
];

/** A separate instance, so its hooks affect no other use of DOMPurify. */
const purify = createPurify(window);
purify.addHook("afterSanitizeAttributes", (element) => {
  if (!element.hasAttribute("href")) return;
  element.setAttribute("rel", "noreferrer noopener");
  element.setAttribute("target", "_blank");
});

export const toFragment = (html: string): DocumentFragment =>
  purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "start", "align"],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
