/**
 * Compares paths segment by segment. A path with more than one reading is never compared: one with `..` or an empty segment,
 * with an encoded or look-alike character, or with one that a shell expands.
 */

/** Whether a value fits. `unclear`: it might mean one that does; a denial then leaves the decision to a person. */
export type Fit = "yes" | "no" | "unclear";

/** Separators of other systems, encodings, what shells expand, and characters that are not shown. */
const DOUBTFUL = /[\\%$`*?~"'\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

interface Path {
  readonly isAbsolute: boolean;
  readonly segments: readonly string[];
}

/** A longer path is not compared, because that takes time. */
export const MAX_PATH = 4_096;

/** Null: it has more than one reading. One slash at the end does not matter. */
export function toPath(text: string): Path | null {
  // Look-alikes such as a full-width slash.
  if (text === "" || text.length > MAX_PATH || DOUBTFUL.test(text) || text.normalize("NFKC") !== text)
    return null;
  const isAbsolute = text.startsWith("/");
  const inner = text.slice(isAbsolute ? 1 : 0, text.length > 1 && text.endsWith("/") ? -1 : undefined);
  const segments = inner === "" ? [] : inner.split("/");
  return segments.every(isPlain) ? { isAbsolute, segments } : null;
}

/** Windows takes `a.` and `a ` for `a`. */
const isPlain = (segment: string): boolean =>
  segment !== "" && !segment.endsWith(".") && segment.trim() === segment;

const isBelow = (path: readonly string[], prefix: readonly string[]): boolean =>
  prefix.length <= path.length && prefix.every((segment, at) => segment === path[at]);

const folded = (segments: readonly string[]): string[] => segments.map((one) => one.toLowerCase());

export function fitOfPath(prefix: string, value: unknown): Fit {
  if (typeof value !== "string") return "unclear";
  const [under, path] = [toPath(prefix), toPath(value)];
  if (!under || !path || under.isAbsolute !== path.isAbsolute) return "unclear";
  if (isBelow(path.segments, under.segments)) return "yes";
  const [a, b] = [folded(under.segments), folded(path.segments)];
  // On a file system that ignores case it may be the same path; and an action on a folder reaches what is below it.
  return isBelow(b, a) || isBelow(a, b) ? "unclear" : "no";
}
