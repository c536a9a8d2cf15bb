/** Lists of Live that push nothing that the reader is about to use. */
import { useRef } from "preact/hooks";
import { useSteady } from "../ui/steady.tsx";

/** The list with all that is below it. */
export interface Place {
  readonly current: Element | null;
}

const isScrolledDown = (list: Element | null): boolean =>
  (list?.closest(".column")?.scrollTop ?? 0) > 8 || scrollY > 8;

export const isIn = ({ current }: Place): boolean => current?.matches(":hover, :focus-within") === true;

/**
 * As `useSteady`; also an empty list takes no rows while the reader is in the place or has scrolled. `isLong` keeps until
 * then whether there was more to show.
 */
export function usePlaces<T>(
  place: Place,
  { items, isLong }: { readonly items: readonly T[]; readonly isLong: boolean },
  keyOf: (item: T) => string,
  appends: (item: T) => boolean = () => false,
) {
  const wasLong = useRef(isLong);
  // With a row that is always there, the list is never empty.
  const steady = useSteady<T | null>(place, [null, ...items], (item) => (item === null ? "" : keyOf(item)), {
    isRead: isScrolledDown,
    appends: (item) => item !== null && appends(item),
  });
  if (!steady.isUsed) wasLong.current = isLong;
  return { ...steady, rows: steady.rows.filter((item) => item !== null), isLong: wasLong.current };
}
