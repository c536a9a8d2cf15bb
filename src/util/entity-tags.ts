/**
 * The tags in `If-Match` and `If-None-Match`, by RFC 9110: a list, in which a quoted tag may contain commas, or `*`. Limit: an
 * entry that is no tag matches nothing.
 */

const TAG = /(W\/)?"([^"]*)"/g;

/** Whether the list has an entry that `matches`, or `*`; false without a header. */
function has(header: string | undefined, matches: (opaque: string, isWeak: boolean) => boolean): boolean {
  if (header === undefined) return false;
  const rest = header.replaceAll(TAG, "").split(",");
  if (rest.some((entry) => entry.trim() === "*")) return true;
  return [...header.matchAll(TAG)].some(([, weak, opaque = ""]) => matches(opaque, weak !== undefined));
}

/** The comparison of `If-Match`, in which a weak tag matches nothing. `matches` gets a tag without its quotes. */
export const hasStrongTag = (header: string | undefined, matches: (opaque: string) => boolean): boolean =>
  has(header, (opaque, isWeak) => !isWeak && matches(opaque));

/** The comparison of `If-None-Match`, in which a weak tag matches a strong one. */
export const hasAnyTag = (header: string | undefined, matches: (opaque: string) => boolean): boolean =>
  has(header, matches);
