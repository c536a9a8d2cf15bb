import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Part } from "../../schema/a2a.ts";
import { adopt } from "../app/adopt.ts";
import { Parts } from "../ui/parts.tsx";
import { format, formattedLately, type Outcome } from "./format.ts";
import { styles } from "./markdown.css";

adopt(styles);

interface Props {
  readonly parts: readonly Part[];
  readonly isMarkdown: (part: Part) => boolean;
}

/**
 * Parts with their Markdown formatted. Until then they are shown as they are; so is a text that cannot be formatted, with
 * the reason.
 */
export function Formatted({ parts, isMarkdown }: Props) {
  const texts = parts.flatMap((part) => (part.text !== undefined && isMarkdown(part) ? [part.text] : []));
  const key = JSON.stringify(texts);
  const found = useSignal<{ readonly key: string; readonly outcomes: readonly Outcome[] } | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    void format(texts, abort.signal).then((outcomes) => {
      if (!abort.signal.aborted) found.value = { key, outcomes };
    });
    return () => abort.abort();
  }, [key]);
  const { value } = found;
  const outcomes = value?.key === key ? value.outcomes : formattedLately(texts);
  let text = 0;
  const shown = parts.map((part) => ({
    part,
    outcome: part.text !== undefined && isMarkdown(part) ? (outcomes?.[text++] ?? null) : undefined,
  }));
  const whyOf = (index: number): string => {
    const outcome = shown[index]?.outcome;
    return outcome && "why" in outcome ? outcome.why : "";
  };
  return (
    <>
      {outcomes === undefined && <p class="loading sr-only">Formatting …</p>}
      {shown.map(({ part, outcome }, index) => {
        if (outcome && "content" in outcome) return <Content key={index} content={outcome.content} />;
        const why = whyOf(index);
        return (
          <Fragment key={index}>
            {/* There may be thousands of texts. */}
            {why !== "" && why !== whyOf(index - 1) && <p class="dim">{why}</p>}
            <Parts parts={[part]} />
          </Fragment>
        );
      })}
    </>
  );
}

/** Text from agents and users, set apart from the console's own text like all such text. */
function Content({ content }: { readonly content: DocumentFragment }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current?.replaceChildren(content.cloneNode(true)), [content]);
  return <div class="formatted said" dir="auto" ref={place} />;
}
