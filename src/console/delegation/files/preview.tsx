/** The content of a file as far as a page should draw it: its first lines, and on request more. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { textIn } from "../../ui/bytes.ts";
import { Code } from "../../ui/code.tsx";
import { DiffLines } from "../../ui/diff.tsx";
import { Picture } from "../../ui/file-part.tsx";
import { isFormatting } from "../../ui/formatting.ts";
import { Output } from "../../ui/output.tsx";
import { PartLink } from "../../ui/parts.tsx";
import { count } from "../../ui/words.ts";
import type { Piece } from "./file-list.ts";
import { beginningOf } from "./lines.ts";
import { parseTable } from "./table.ts";

/** Of a file that is not unfolded. */
const FOLDED = { lines: 30, width: 1_000 };
/** Beyond this, a page would be slow: the rest is in the download. */
const UNFOLDED = { lines: 20_000, width: 10_000 };
/** In characters. */
const MOST = 1_000_000;
/** As for messages. */
const MOST_FORMATTED = 100_000;
const TABLE = { rows: 51, columns: 20 };
/** Of a cell, in characters. */
const CELL = 200;

/** Null: it is only downloaded, or opened. */
export function Preview({ piece }: { readonly piece: Piece }) {
  const { kind, content, isBytes } = piece;
  const text = useMemo(() => (isBytes && kind !== "image" ? textIn(content) : content), [content]);
  if (kind === "link") return <PartLink url={content} name={undefined} />;
  if (kind === "stored") return <PartLink url={content} name={piece.name} size={piece.size} />;
  if (kind === "image")
    return <Picture base64={content} mediaType={piece.type} name={piece.name ?? "picture"} />;
  if (kind === "other" || text === null)
    return <p class="dim">There is no preview for files of this type.</p>;
  if (kind === "table") return <TablePreview text={text} />;
  return <TextPreview text={text} kind={kind} />;
}

interface TextProps {
  readonly text: string;
  readonly kind: Exclude<Piece["kind"], "link" | "stored" | "image" | "other" | "table">;
}

function TextPreview({ text, kind }: TextProps) {
  const isOpen = useSignal(false);
  const folded = useMemo(() => beginningOf(text, FOLDED), [text]);
  const unfolded = useMemo(
    () => (isOpen.value ? beginningOf(text.slice(0, MOST), UNFOLDED) : null),
    [text, isOpen.value],
  );
  const { text: shown } = unfolded ?? folded;
  return (
    <>
      <Content text={shown} kind={kind} isTall={unfolded !== null} />
      {!folded.isWhole && (
        <p class="preview-more">
          <button
            type="button"
            aria-expanded={isOpen.value}
            onClick={() => {
              isOpen.value = !isOpen.value;
            }}
          >
            {isOpen.value
              ? "Show less"
              : folded.lines > 1
                ? `Show all ${count(folded.lines, "line")}`
                : "Show all"}
          </button>
          {unfolded && (!unfolded.isWhole || text.length > MOST) && (
            <span class="dim">Only the beginning is shown. The download has everything.</span>
          )}
        </p>
      )}
    </>
  );
}

function Content({ text, kind, isTall }: TextProps & { readonly isTall: boolean }) {
  if (kind === "markdown" && isFormatting.value && text.length <= MOST_FORMATTED)
    return <Output parts={[{ text, mediaType: "text/markdown" }]} />;
  const size = isTall ? "tall" : "";
  if (kind === "diff") return <DiffLines text={text} kind={size} />;
  return <Code kind={size}>{text}</Code>;
}

function TablePreview({ text }: { readonly text: string }) {
  const { rows, moreRows, moreColumns } = useMemo(() => parseTable(text, TABLE), [text]);
  const [head = [], ...body] = rows;
  const more = [
    moreRows > 0 && count(moreRows, "more row"),
    moreColumns > 0 && count(moreColumns, "more column"),
  ];
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="table-scroll" tabIndex={0} aria-label="Table">
        <table>
          <thead>
            <tr>
              {head.map((cell, index) => (
                <th key={index} scope="col">
                  <Cell>{cell}</Cell>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column} class={isNumber(cell) ? "number" : ""}>
                    <Cell>{cell}</Cell>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {more.some(Boolean) && <p class="dim">{more.filter(Boolean).join(", ")} in the download.</p>}
    </>
  );
}

/** Also with a unit of percent. A longer cell is a text, whatever is in it. */
const isNumber = (cell: string): boolean =>
  cell.length <= MAX_NUMBER && /\d/.test(cell) && /^[\s\d.,%+-]*$/.test(cell);
const MAX_NUMBER = 40;

/** What somebody wrote, at most a few lines of it. */
function Cell({ children }: { readonly children: string }): ComponentChildren {
  return <bdi>{children.length > CELL ? `${children.slice(0, CELL)}…` : children}</bdi>;
}
