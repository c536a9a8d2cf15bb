/** The list of the inbox as a screen. */
import { stripVTControlCharacters } from "node:util";
import type { CliHost } from "../host.ts";
import type { Frame, Size } from "../screen/full-screen.ts";
import { bodyRows, layout } from "../screen/layout.ts";
import { Scroll } from "../screen/scroll.ts";
import { painter } from "../show/output.ts";
import { displayWidth } from "../show/text.ts";
import { entryLines } from "./columns.ts";
import { type Entry, isForOthers, isQuestion, isVoted } from "./entry.ts";

export interface ListState {
  readonly principal: string;
  readonly entries: readonly Entry[];
  /** Counted from 0: the row of the selected entry, or of the one in its place. */
  readonly row: number;
  readonly isSelected: boolean;
  readonly isLoaded: boolean;
  readonly status: string;
  /** In milliseconds since 1970. */
  readonly now: number;
}

const KEYS = "↑↓ move  Enter open  a approve  d deny  r answer  o details  q quit";
const MARK = "> ";
const NO_MARK = "  ";

export function listFrame(host: CliHost, size: Size, state: ListState): Frame {
  const { principal, entries, row, isSelected, isLoaded, status, now } = state;
  const paint = painter(host, "stdout");
  const [head = "", ...lines] = entryLines(host, entries, now, size.columns - MARK.length);
  const body = lines.map((line, at) =>
    isSelected && at === row ? paint.inverse(MARK + line + restOf(line, size.columns)) : NO_MARK + line,
  );
  const questions = entries.filter((entry) => isQuestion(entry) && !isForOthers(entry)).length;
  const voted = entries.filter(isVoted).length;
  const others = entries.filter((entry) => isForOthers(entry) && !isVoted(entry)).length;
  const empty = isLoaded ? "Nothing waits for you." : "Reading…";
  const parts = {
    title: `Inbox of ${principal}`,
    aside: `${counted(questions, "question")}, ${voted > 0 ? `${voted} approved, ` : ""}${others > 0 ? `${others} for others, ` : ""}${counted(entries.length - questions - voted - others, "result")}`,
    head: entries.length > 0 ? [NO_MARK + head] : [],
    body: entries.length > 0 ? body : [empty],
    status,
    keys: KEYS,
  };
  // The selected line stays in the middle of a long list.
  const scroll = new Scroll(row - Math.floor(bodyRows(size, parts) / 2));
  return layout(size, paint, { ...parts, scroll });
}

/** The spaces that fill the row; colors take no columns. */
const restOf = (line: string, columns: number): string =>
  " ".repeat(Math.max(0, columns - MARK.length - displayWidth(stripVTControlCharacters(line))));

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
