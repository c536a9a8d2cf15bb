import { type Change, pathText } from "../../schema/changes.ts";
import { truncate } from "../../schema/text.ts";
import { adopt } from "../app/adopt.ts";
import { Code } from "../ui/code.tsx";
import { Said } from "../ui/said.tsx";
import { count } from "../ui/words.ts";
import { styles } from "./change-list.css";
import { lineDiff } from "./line-diff.ts";

adopt(styles);

interface Props {
  readonly changes: readonly Change[];
  /** How many there are, if not all of them are here. */
  readonly total?: number;
  /** The values at these paths are not shown. */
  readonly isSecret?: (path: Change["path"]) => boolean;
}

/** More changes are counted; longer values are cut. Both are in the form itself. */
const MAX_CHANGES = 50;
const MAX_VALUE = 5_000;

/** What an edit changed: each value before and after. */
export function ChangeList({ changes, total = changes.length, isSecret = () => false }: Props) {
  const left = total - Math.min(changes.length, MAX_CHANGES);
  return (
    <ul class="changes" aria-label="Changes">
      {changes.slice(0, MAX_CHANGES).map((change) => (
        <li key={JSON.stringify(change.path)}>
          <b class="change-path">
            <Said>{pathText(change.path) || "all"}</Said>
          </b>{" "}
          {change.hidden || isSecret(change.path) ? "changed, not shown" : <OneChange {...change} />}
        </li>
      ))}
      {left > 0 && <li>and {count(left, "more change", "more changes")}</li>}
    </ul>
  );
}

function OneChange(change: Change) {
  const { from, to } = change;
  if (!("from" in change)) return <Single word="added" value={to} />;
  if (!("to" in change)) return <Single word="removed" value={from} />;
  // The lines of a list and of a text would look the same.
  const [before, after] = kindOf(from) === kindOf(to) ? [linesOf(from), linesOf(to)] : [null, null];
  if (before !== null && after !== null && /[\r\n]/.test(before + after))
    return <Lines before={before} after={after} />;
  const isPlain = [from, to].every(isPlainText);
  return (
    <>
      <del>
        <Shown>{isPlain ? String(from) : JSON.stringify(from)}</Shown>
      </del>{" "}
      →{" "}
      <ins>
        <Shown>{isPlain ? String(to) : JSON.stringify(to)}</Shown>
      </ins>
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
        <Mark>
          <Shown>{isPlainText(value) ? value : JSON.stringify(value)}</Shown>
        </Mark>
      )}
    </>
  );
}

/** Other texts are shown in quotes: spaces at an end would not be seen, and "12" is not 12. */
const isPlainText = (value: unknown): value is string =>
  typeof value === "string" &&
  value.trim() === value &&
  !/^$|^(?:-?\d.*|true|false|null)$|\p{Cc}/u.test(value);

/** A value in its line: cut if it is long, and with what cannot be seen. */
const Shown = ({ children: text }: { readonly children: string }) => (
  <Said>{visible(text.length > MAX_VALUE ? `${truncate(text, MAX_VALUE)} …` : text)}</Said>
);

const kindOf = (value: unknown): string => (Array.isArray(value) ? "list" : typeof value);

/** Characters that cannot be seen, or that turn the direction of what follows, by their numbers. */
const visible = (text: string): string =>
  text.replace(
    /(?![\t\r\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (found) => `\\u{${found.codePointAt(0)?.toString(16)}}`,
  );

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
          {kind === "gap" ? `  … ${text}` : `${SIGNS[kind] ?? " "} `}
          {kind !== "gap" && <Shown>{text}</Shown>}
          {"\n"}
        </span>
      ))}
    </Code>
  );
}

const SIGNS: Readonly<Record<string, string>> = { added: "+", removed: "-" };
