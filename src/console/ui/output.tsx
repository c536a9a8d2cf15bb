/** What an agent or a person wrote: Markdown formatted, unless the reader wants it as written. */
import type { Part } from "../../schema/a2a.ts";
import { lazyFrom } from "../app/lazy-from.tsx";
import { isFormatting } from "./formatting.ts";
import { isMarkdown } from "./marks.ts";
import { Parts } from "./parts.tsx";

const loadFormatted = () => import("../markdown/formatted.tsx");
const Formatted = lazyFrom(loadFormatted, ({ Formatted: loaded }) => loaded);

/** Loads what formats, if the reader wants that: it is there when the text is. */
export function loadEarly(): void {
  if (isFormatting.peek()) loadFormatted().catch(() => {});
}

export function Output({ parts }: { readonly parts: readonly Part[] }) {
  if (!isFormatting.value || !parts.some(isMarkdown)) return <Parts parts={parts} />;
  return (
    <div class="parts">
      <Formatted parts={parts} isMarkdown={isMarkdown} />
    </div>
  );
}
