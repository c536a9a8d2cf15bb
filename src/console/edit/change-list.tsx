import { type Change, pathText } from "../../schema/changes.ts";
import { adopt } from "../app/adopt.ts";
import { Code } from "../ui/code.tsx";
import { Said } from "../ui/said.tsx";
import { count } from "../ui/words.ts";
import { styles } from "./change-list.css";
import { lineDiff } from "./line-diff.ts";

adopt(styles);

interface Props {
  readonly changes: readonly Change[];
  /** The values at these paths are not shown. */
  readonly isSecret?: (path: Change["path"]) => boolean;
}

/** What an edit changed: each value before and after. */
export function ChangeList({ changes, isSecret = () => false }: Props) {
  return (
    <ul class="changes" aria-label="Changes">
      {changes.map((change) => (
        <li key={JSON.stringify(change.path)}>
          <b class="change-path">
            <Said>{pathText(change.path) || "all"}</Said>
          </b>{" "}
          {isSecret(change.path) ? "changed, not shown" : <OneChange {...change} />}
        </li>
      ))}
    </ul>
  );
}

function OneChange(change: Change) {
  const { from, to } = change;
  if (!("from" in change)) return <Single word="added" value={to} />;
  if (!("to" in change)) return <Single word="removed" value={from} />;
  const [before, after] = [linesOf(from), linesOf(to)];
  if (before !== null && after !== null && /[\r\n]/.test(before + after))
    return <Lines before={before} after={after} />;
  const isPlain = [from, to].every(isPlainText);
  return (
    <>
      <del>{isPlain ? String(from) : JSON.stringify(from)}</del> →{" "}
      <ins>{isPlain ? String(to) : JSON.stringify(to)}</ins>
    </>
  );
}

function Single({ word, value }: { readonly word: "added" | "removed"; readonly value: unknown }) {
  const lines = linesOf(value);
  const Mark = word === "added" ? "ins" : "del";
  return (
    <>
      {word}{" "}
      {lines?.includes("\n") ? (
        <Lines before={word === "added" ? null : lines} after={word === "added" ? lines : null} />
      ) : (
        <Mark>{isPlainText(value) ? value : JSON.stringify(value)}</Mark>
      )}
    </>
  );
}

/** Other texts are shown in quotes: spaces at an end would not be seen, and "12" is not 12. */
const isPlainText = (value: unknown): value is string =>
  typeof value === "string" &&
  value.trim() === value &&
  !/^$|^(?:-?\d.*|true|false|null)$|\p{Cc}/u.test(value);

/** Texts, and what has members or items, are compared line by line. Null: a number, or yes or no. */
function linesOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return null;
  if (Array.isArray(value) && value.length > 0 && value.every(isPlainText)) return value.join("\n");
  return JSON.stringify(value, null, 2);
}

interface LinesProps {
  /** Null: there was, or is, nothing. */
  readonly before: string | null;
  readonly after: string | null;
}

function Lines({ before, after }: LinesProps) {
  const lines =
    before !== null && after !== null
      ? lineDiff(before, after)
      : (before ?? after ?? "")
          .split("\n")
          .map((text) => ({ kind: before === null ? "added" : "removed", text }));
  const size = (text: string) => count(text.split("\n").length, "line");
  if (lines === null) {
    return (
      <>
        {size(before ?? "")} → {size(after ?? "")}
      </>
    );
  }
  return (
    <Code kind="diff">
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={kind === "gap" ? "place" : kind}>
          {kind === "gap" ? `  … ${text}` : `${SIGNS[kind] ?? " "} ${text}`}
          {"\n"}
        </span>
      ))}
    </Code>
  );
}

const SIGNS: Readonly<Record<string, string>> = { added: "+", removed: "-" };
