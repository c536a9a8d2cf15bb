/** Reads a page of ListObjectsV2. Limit: only what it needs of the XML, in the form in which all servers write it. */

export interface StoredObject {
  readonly key: string;
  readonly size: number;
}

export interface ObjectPage {
  readonly objects: readonly StoredObject[];
  /** For the next page; null on the last one. */
  readonly next: string | null;
}

export function parsePage(xml: string): ObjectPage {
  const [head = "", ...entries] = xml.split("<Contents>");
  if (!head.includes("<ListBucketResult"))
    throw new Error("the bucket answered with something else than a list");
  const objects = entries.map((entry) => ({
    key: textIn(entry, "Key"),
    size: Number(textIn(entry, "Size") || Number.NaN),
  }));
  if (!objects.every(({ key, size }) => key !== "" && Number.isSafeInteger(size)))
    throw new Error("the bucket answered with a list that cannot be read");
  const next = textIn(xml, "NextContinuationToken");
  return { objects, next: next === "" ? null : next };
}

/** The text of the first element with this name; empty if there is none. */
export function textIn(xml: string, name: string): string {
  const start = xml.indexOf(`<${name}>`);
  if (start < 0) return "";
  const from = start + name.length + 2;
  const end = xml.indexOf(`</${name}>`, from);
  return end < 0 ? "" : unescaped(xml.slice(from, end));
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const unescaped = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|([a-z]{2,4}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
