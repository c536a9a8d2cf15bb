/** Formats texts in a worker, because a text can take the parser minutes, and cleans the result on the page. */
import createPurify from "dompurify";
import type {} from "trusted-types";
import type { Formatted } from "./to-html.ts";

const MAX_MS = 3_000;
const TOO_LONG = { why: "Shown as text, because formatting it takes too long." };
const EMPTY = { why: "Shown as text, because nothing of it would be visible." };
const FAILED = { why: "Shown as text, because the formatter failed. Reload the page to try again." };

/** The elements to show, or why the text is shown as it is. */
export type Outcome = { readonly content: DocumentFragment } | { readonly why: string };

/** The results of the texts, in their order. Never rejects. */
export async function format(texts: readonly string[], abort: AbortSignal): Promise<readonly Outcome[]> {
  const results = await inWorker(texts, abort).catch(() => texts.map(() => FAILED));
  return results.map(toOutcome);
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

let address: Promise<string> | undefined;

/** The worker's script. It is the only address that the page's policy lets become a script. */
async function workerAddress(): Promise<string> {
  const { workerUrl } = await import("./worker.ts");
  window.trustedTypes?.createPolicy("default", {
    createScriptURL: (url) => {
      if (url !== workerUrl) throw new TypeError("not the address of a worker");
      return url;
    },
  });
  return workerUrl;
}

async function inWorker(texts: readonly string[], abort: AbortSignal): Promise<readonly Formatted[]> {
  address ??= workerAddress();
  const worker = new Worker(await address, { type: "module" });
  const results: Formatted[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const rest = await new Promise<Formatted>((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<Formatted>) => {
      results.push(data);
      if (results.length === texts.length) resolve(TOO_LONG);
    };
    worker.onerror = () => resolve(FAILED);
    timer = setTimeout(resolve, MAX_MS, TOO_LONG);
    abort.addEventListener("abort", () => resolve(FAILED));
    worker.postMessage(texts);
  });
  clearTimeout(timer);
  worker.terminate();
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
