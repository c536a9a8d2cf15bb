/** An agent's text: shown as written, or formatted as Markdown on request. */
import { useSignal } from "@preact/signals";
import type { Part } from "../../schema/a2a.ts";
import { lazyFrom } from "../app/lazy-from.tsx";
import { Parts } from "../ui/parts.tsx";

const Markdown = lazyFrom(
  () => import("../markdown/markdown.tsx"),
  ({ Markdown: loaded }) => loaded,
);

export function Output({ parts }: { readonly parts: readonly Part[] }) {
  const isFormatted = useSignal(false);
  if (!parts.some(isMarkdown)) return <Parts parts={parts} />;
  return (
    <div class="parts">
      <button
        type="button"
        class="quiet format"
        onClick={() => {
          isFormatted.value = !isFormatted.value;
        }}
      >
        {isFormatted.value ? "Show as text" : "Show formatted"}
      </button>
      {parts.map((part, index) =>
        isFormatted.value && isMarkdown(part) ? (
          <Markdown key={index} text={part.text ?? ""} />
        ) : (
          <Parts key={index} parts={[part]} />
        ),
      )}
    </div>
  );
}

/** Beyond this, formatting would hold up the page. */
const MAX_LENGTH = 100_000;
/** Headings, lists, quotes, tables and fences at the start of a line; emphasis, code and links anywhere. */
const SIGNS = /^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |>|\||```|~~~)|\*\*|__|`|\]\(/m;

function isMarkdown({ text, mediaType = "" }: Part): boolean {
  if (text === undefined || text.length > MAX_LENGTH) return false;
  if (mediaType === "text/markdown") return true;
  return (mediaType === "" || mediaType === "text/plain") && SIGNS.test(text);
}
