/** Changes as one line of text: `replicas 3 → 5, tag added "x"`. Limit: the texts come from others; who prints them cleans them. */
import type { ChangesByRequest } from "./answered.ts";
import { type BoundedChanges, type Change, pathText } from "./changes.ts";
import { truncate } from "./text.ts";

const MAX_VALUE = 60;

/** In a line about an event. */
const SHOWN = 5;

/** What an answer changed, a text for each request that it changed. */
export const changeTexts = (changes: ChangesByRequest = {}): readonly string[] =>
  Object.values(changes).map((one) => changesText(one, SHOWN));

/** The first `most` changes, and how many more there are. */
export function changesText(
  { changes, total }: BoundedChanges,
  most: number = Number.POSITIVE_INFINITY,
): string {
  const shown = changes.slice(0, most).map(changeText);
  const left = total - shown.length;
  if (left === 0) return shown.join(", ");
  const more = shown.length === 0 ? "" : " more";
  return [...shown, `${left}${more} ${left === 1 ? "change" : "changes"}`].join(", ");
}

function changeText(change: Change): string {
  const name = pathText(change.path) || "all";
  if (change.hidden) return `${name} changed, not shown`;
  if (!("from" in change)) return `${name} added ${valueText(change.to)}`;
  if (!("to" in change)) return `${name} removed`;
  return `${name} ${valueText(change.from)} → ${valueText(change.to)}`;
}

function valueText(value: unknown): string {
  const json = JSON.stringify(value) ?? "";
  return json.length <= MAX_VALUE ? json : `${truncate(json, MAX_VALUE)}…`;
}
