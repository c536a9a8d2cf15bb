/** A text that a person edits with the usual keys of a terminal. The rows that show it contain no control characters. */
import { oneLine } from "../show/output.ts";
import { displayWidth, graphemesOf } from "../show/text.ts";
import type { Key } from "./keys.ts";

const split = (text: string): string[] => [...graphemesOf(text)].map(({ segment }) => segment);

export interface FieldRows {
  readonly rows: readonly string[];
  readonly cursor: { readonly row: number; readonly column: number };
}

export class TextField {
  #before: string[];
  #after: string[] = [];

  constructor(text = "") {
    this.#before = split(text);
  }

  get text(): string {
    return [...this.#before, ...this.#after].join("");
  }

  set(text: string): void {
    this.#before = split(text);
    this.#after = [];
  }

  /** Returns whether the field uses the key. */
  press({ name, text }: Key): boolean {
    const edit = EDITS[name];
    if (edit) edit(this);
    else if (text !== "") this.#before = split(this.#before.join("") + text);
    return edit !== undefined || text !== "";
  }

  /** Moves the cursor by this many characters, at most to an end. */
  move(by: number): void {
    const all = [...this.#before, ...this.#after];
    const at = Math.min(all.length, Math.max(0, this.#before.length + by));
    this.#before = all.slice(0, at);
    this.#after = all.slice(at);
  }

  /** Deletes characters before the cursor, or after it if `count` is negative. */
  delete(count: number): void {
    if (count > 0) this.#before.splice(Math.max(0, this.#before.length - count));
    else this.#after.splice(0, -count);
  }

  /** The number of characters from the beginning of the word before the cursor. */
  get wordLength(): number {
    const isSpace = (at: number) => this.#before[at]?.trim() === "";
    let start = this.#before.length;
    while (start > 0 && isSpace(start - 1)) start -= 1;
    while (start > 0 && !isSpace(start - 1)) start -= 1;
    return this.#before.length - start;
  }

  /** The text in rows of this width; each character of a secret is a dot. */
  rows(width: number, isSecret = false): FieldRows {
    const rows = [""];
    let used = 0;
    let cursor = { row: 0, column: 0 };
    const put = (shown: string, isEnd = false) => {
      const wide = displayWidth(shown);
      if (used + wide > width) {
        rows.push("");
        used = 0;
      }
      rows[rows.length - 1] += shown;
      used += wide;
      if (isEnd) used = width;
    };
    for (const [at, grapheme] of [...this.#before, ...this.#after, ""].entries()) {
      const isBreak = grapheme === "\n";
      const shown = grapheme === "" ? "" : isSecret ? "•" : isBreak ? "⏎" : visible(grapheme);
      // The cursor is on the next row if this one is full.
      const isFull = used + Math.max(1, displayWidth(shown)) > width;
      if (at === this.#before.length) {
        cursor = isFull ? { row: rows.length, column: 0 } : { row: rows.length - 1, column: used };
      }
      if (grapheme !== "") put(shown, isBreak && !isSecret);
    }
    if (cursor.row === rows.length) rows.push("");
    return { rows, cursor };
  }
}

/** An agent may have written the text, so a character that controls the terminal is replaced. */
const visible = (grapheme: string): string => oneLine(`|${grapheme}|`).slice(1, -1) || "\ufffd";

const EDITS: Readonly<Record<string, (field: TextField) => void>> = {
  backspace: (field) => field.delete(1),
  delete: (field) => field.delete(-1),
  left: (field) => field.move(-1),
  right: (field) => field.move(1),
  home: (field) => field.move(Number.NEGATIVE_INFINITY),
  end: (field) => field.move(Number.POSITIVE_INFINITY),
  "ctrl+a": (field) => field.move(Number.NEGATIVE_INFINITY),
  "ctrl+e": (field) => field.move(Number.POSITIVE_INFINITY),
  "ctrl+u": (field) => field.delete(Number.POSITIVE_INFINITY),
  "ctrl+k": (field) => field.delete(Number.NEGATIVE_INFINITY),
  "ctrl+w": (field) => field.delete(field.wordLength),
};
