/** A table from CSV or TSV, as far as it is shown. */

export interface Table {
  /** The first rows, the head among them; each has the same number of cells. */
  readonly rows: readonly (readonly string[])[];
  readonly moreRows: number;
  readonly moreColumns: number;
}

interface Bounds {
  readonly rows: number;
  readonly columns: number;
}

const SEPARATORS = [",", ";", "\t"] as const;

/** The one that is in the first line most often. */
function separatorOf(text: string): string {
  const line = text.slice(0, 10_000).split(/[\r\n]/, 1)[0] ?? "";
  const plain = line.replace(/"[^"]*"/g, "");
  const often = (separator: string) => plain.split(separator).length;
  return SEPARATORS.reduce((best, one) => (often(one) > often(best) ? one : best));
}

/** A field in quotes may have separators, line breaks and doubled quotes. */
export function parseTable(text: string, bounds: Bounds): Table {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let [rowCount, columnCount, column, at] = [0, 0, 0, text.startsWith("\ufeff") ? 1 : 0];
  while (at < text.length) {
    const field = fieldAt(text, at, separator);
    if (rowCount < bounds.rows) {
      if (column === 0) rows.push([]);
      if (column < bounds.columns) rows.at(-1)?.push(field.value);
    }
    column += 1;
    columnCount = Math.max(columnCount, column);
    at = field.end;
    if (text[at] === separator) {
      at += 1;
      // A separator at the end of the text is followed by an empty field.
      if (at < text.length) continue;
      if (rowCount < bounds.rows && column < bounds.columns) rows.at(-1)?.push("");
      columnCount = Math.max(columnCount, column + 1);
    }
    at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
    column = 0;
    rowCount += 1;
  }
  const width = Math.min(columnCount, bounds.columns);
  return {
    rows: rows.map((row) => [...row, ...Array<string>(width - row.length).fill("")]),
    moreRows: rowCount - rows.length,
    moreColumns: columnCount - width,
  };
}

/** The field that starts at the place, and where it ends. */
function fieldAt(text: string, start: number, separator: string): { value: string; end: number } {
  let value = "";
  let at = start;
  if (text[at] === '"') {
    for (at += 1; at < text.length; at += 2) {
      const quote = text.indexOf('"', at);
      const end = quote === -1 ? text.length : quote;
      value += text.slice(at, end);
      at = end;
      if (text[at + 1] !== '"') break;
      value += '"';
    }
    at += 1;
  }
  const rest = at;
  while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at += 1;
  return { value: value + text.slice(rest, at), end: at };
}
