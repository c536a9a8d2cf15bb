/** An agent's text: shown as written, or formatted as Markdown on request. */
import { useSignal } from "@preact/signals";
import type { Artifact, Part } from "../../schema/a2a.ts";
import { lazyFrom } from "../app/lazy-from.tsx";
import { Empty } from "../ui/empty.tsx";
import { Parts } from "../ui/parts.tsx";
import { Said } from "../ui/said.tsx";

const Formatted = lazyFrom(
  () => import("../markdown/formatted.tsx"),
  ({ Formatted: loaded }) => loaded,
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
      {isFormatted.value ? (
        <Formatted parts={parts} isMarkdown={isMarkdown} />
      ) : (
        parts.map((part, index) => <Parts key={index} parts={[part]} />)
      )}
    </div>
  );
}

/** Headings, lists, quotes, tables and fences at the start of a line; emphasis, code and links anywhere. */
const SIGNS = /^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |>|\||```|~~~)|\*\*|__|`|\]\(/m;

function isMarkdown({ text, mediaType = "" }: Part): boolean {
  if (text === undefined) return false;
  if (mediaType === "text/markdown") return true;
  return (mediaType === "" || mediaType === "text/plain") && SIGNS.test(text);
}

/** The artifacts of the delegation. */
export function Artifacts({ artifacts }: { readonly artifacts: readonly Artifact[] }) {
  if (artifacts.length === 0) {
    return (
      <Empty title="No artifacts">
        Files and other output that the agent sends while it works appear here.
      </Empty>
    );
  }
  return (
    <>
      {artifacts.map(({ artifactId, name = artifactId, description, parts }) => (
        <section class="artifact" key={artifactId}>
          <h2>
            <Said>{name}</Said>
          </h2>
          {description !== undefined && (
            <p class="dim">
              <Said>{description}</Said>
            </p>
          )}
          <Output parts={parts} />
        </section>
      ))}
    </>
  );
}
