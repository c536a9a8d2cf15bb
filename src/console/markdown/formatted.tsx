import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Part } from "../../schema/a2a.ts";
import { adopt } from "../app/adopt.ts";
import { Parts } from "../ui/parts.tsx";
import { format, type Outcome } from "./format.ts";
import { styles } from "./markdown.css";

adopt(styles);

interface Props {
  readonly parts: readonly Part[];
  readonly isMarkdown: (part: Part) => boolean;
}

/** Parts with their Markdown formatted. A text that cannot be formatted is shown as it is, with the reason. */
export function Formatted({ parts, isMarkdown }: Props) {
  const outcomes = useSignal<ReadonlyMap<number, Outcome>>(new Map());
  const texts = parts.map((part) => (isMarkdown(part) ? part.text : undefined));
  useEffect(() => {
    const abort = new AbortController();
    const wanted = texts.flatMap((text, index) => (text === undefined ? [] : [{ text, index }]));
    void format(
      wanted.map(({ text }) => text),
      abort.signal,
    ).then((found) => {
      if (abort.signal.aborted) return;
      outcomes.value = new Map(found.map((outcome, at) => [wanted[at]?.index ?? 0, outcome]));
    });
    return () => abort.abort();
  }, [JSON.stringify(texts)]);
  const shown = outcomes.value;
  const noteOf = (index: number): string => {
    const outcome = shown.get(index);
    if (texts[index] === undefined || (outcome && "content" in outcome)) return "";
    return outcome?.why ?? "Formatting …";
  };
  return parts.map((part, index) => {
    const outcome = shown.get(index);
    if (outcome && "content" in outcome) return <Content key={index} content={outcome.content} />;
    const note = noteOf(index);
    return (
      <Fragment key={index}>
        {/* There may be thousands of texts. */}
        {note !== "" && note !== noteOf(index - 1) && (
          <p class={outcome ? "dim" : "loading"} role="status">
            {note}
          </p>
        )}
        <Parts parts={[part]} />
      </Fragment>
    );
  });
}

/** Text from agents and users, set apart from the console's own text like all such text. */
function Content({ content }: { readonly content: DocumentFragment }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current?.replaceChildren(content), [content]);
  return <div class="formatted said" dir="auto" ref={place} />;
}
