/** The parts of a screen: a title, a body that scrolls, and the lines below it. */
import { stripVTControlCharacters } from "node:util";
import type { Painter } from "../show/output.ts";
import { cutTo, displayWidth, padTo } from "../show/text.ts";
import type { Frame, Size } from "./full-screen.ts";
import type { Scroll } from "./scroll.ts";

export interface Parts {
  readonly title: string;
  /** At the right of the title, if there is room. */
  readonly aside?: string;
  /** At the top of the body; it does not scroll. */
  readonly head?: readonly string[];
  readonly body: readonly string[];
  readonly scroll: Scroll;
  /** Below the body, at most as many lines as fit. */
  readonly foot?: readonly string[];
  /** One line. */
  readonly status?: string;
  readonly keys: string;
  /** In `foot`, counted from its first line. */
  readonly cursor?: Frame["cursor"];
}

/** How many lines of the body are shown. At least one, on the smallest screen. */
export const bodyRows = ({ rows }: Size, { head = [], foot = [] }: Pick<Parts, "head" | "foot">): number =>
  Math.max(1, rows - 4 - head.length - foot.length);

export function layout(size: Size, paint: Painter, parts: Parts): Frame {
  const { title, aside = "", head = [], body, scroll, foot = [], status = "", keys, cursor } = parts;
  const { columns } = size;
  const shown = bodyRows(size, parts);
  scroll.fit(body.length, shown);
  const below = body.length - scroll.at - shown;
  const more = below > 0 ? `${below} more below: PgDn` : scroll.at > 0 ? "PgUp: more above" : "";
  const window = body.slice(scroll.at, scroll.at + shown);
  const top = [titleLine(columns, paint, title, aside), "", ...head, ...window];
  const filled = [...top, ...Array<string>(Math.max(0, shown - window.length)).fill("")];
  const note = [status, more].filter(Boolean).join("  ");
  const lines = [...filled, ...foot, paint.yellow(cutTo(note, columns)), paint.dim(cutTo(keys, columns))];
  return {
    lines: lines.map((line) => fitting(line, columns)),
    cursor: cursor && { row: cursor.row + filled.length, column: cursor.column },
  };
}

/** A table does not become narrower than some columns need; a line that is too long loses its color with its end. */
function fitting(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line);
  return displayWidth(plain) <= columns ? line : cutTo(plain, columns);
}

function titleLine(columns: number, paint: Painter, title: string, aside: string): string {
  const room = columns - displayWidth(aside) - 2;
  if (aside === "" || room < displayWidth(title)) return paint.bold(cutTo(title, columns));
  return paint.bold(padTo(title, room + 2)) + aside;
}
