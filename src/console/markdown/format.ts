/** Formats texts in a worker, because a text can take the parser minutes, and cleans the result on the page. */
import createPurify from "dompurify";
import type { Formatted } from "./to-html.ts";
import { withWorker } from "./workers.ts";

const MAX_MS = 3_000;
/** After some texts that took too long, others get less: somebody may write them to keep the machine busy. */
const SLOW = { most: 3, ms: 300 };
const TOO_LONG = { why: "Shown as text, because formatting it takes too long." };
const EMPTY = { why: "Shown as text, because nothing of it would be visible." };
const FAILED = { why: "Shown as text, because the formatter failed. Reload the page to try again." };

/** The elements to show, or why the text is shown as it is. */
export type Outcome = { readonly content: DocumentFragment } | { readonly why: string };

/** The results of the texts, in their order, of those that were formatted lately. */
const lately = new Map<string, readonly Outcome[]>();
/** In characters. */
const MOST_KEPT = 1_000_000;

/** At once, if they were formatted lately. */
export const formattedLately = (texts: readonly string[]): readonly Outcome[] | undefined =>
  lately.get(keyOf(texts));

const keyOf = (texts: readonly string[]): string => JSON.stringify(texts);

/** The results of the texts, in their order. Never rejects. */
export async function format(texts: readonly string[], abort: AbortSignal): Promise<readonly Outcome[]> {
  const known = formattedLately(texts);
  if (known) return known;
  const results = await inWorker(texts, abort).catch(() => texts.map(() => FAILED));
  const outcomes = results.map(toOutcome);
  if (!outcomes.includes(FAILED)) keep(keyOf(texts), outcomes);
  return outcomes;
}

function keep(key: string, outcomes: readonly Outcome[]): void {
  lately.set(key, outcomes);
  let size = 0;
  for (const one of lately.keys()) size += one.length;
  for (const one of lately.keys()) {
    if (size <= MOST_KEPT) return;
    lately.delete(one);
    size -= one.length;
  }
}

function toOutcome(result: Formatted): Outcome {
  if ("why" in result) return result;
  try {
    const content = toFragment(result.html);
    // For example, of a text that only defines an address.
    const isEmpty = !content.textContent?.trim() && !content.querySelector("hr");
    return isEmpty ? EMPTY : { content };
  } catch {
    return FAILED;
  }
}

let slowTexts = 0;

async function inWorker(texts: readonly string[], abort: AbortSignal): Promise<readonly Formatted[]> {
  const results: Formatted[] = [];
  let rest: Formatted = FAILED;
  await withWorker(async (worker) => {
    if (abort.aborted) return true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const isWhole = await new Promise<boolean>((resolve) => {
      worker.onmessage = ({ data }: MessageEvent<Formatted>) => {
        results.push(data);
        if (results.length === texts.length) resolve(true);
      };
      worker.onerror = () => resolve(false);
      timer = setTimeout(
        () => {
          rest = TOO_LONG;
          slowTexts += 1;
          resolve(false);
        },
        slowTexts < SLOW.most ? MAX_MS : SLOW.ms,
      );
      abort.addEventListener("abort", () => resolve(false));
      worker.postMessage(texts);
    });
    clearTimeout(timer);
    return isWhole;
  });
  return texts.map((_, index) => results[index] ?? rest);
}

/** HTML of formatted text as elements: only those elements and attributes that are listed here, whatever the HTML has. */
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

const toFragment = (html: string): DocumentFragment =>
  purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "start", "align"],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
