/** Lists in which a person acts: while the pointer, the focus or a finger is in one, its rows keep their places. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { keepPlaces } from "./steady-rows.ts";
import { count } from "./words.ts";

/** A touch screen goes on hovering where it was tapped last. */
const canHover = matchMedia("(hover: hover)");
/** A tap clicks a moment after the finger has left. */
const FINGER_MS = 1_000;

/** Where the finger is, or was a moment ago. */
let finger: EventTarget | null = null;
let lifted: ReturnType<typeof setTimeout>;
const looks = new Set<() => void>();

/** Not at once: between two elements, the focus is nowhere. */
const lookSoon = () =>
  setTimeout(() => {
    for (const look of looks) look();
  });
for (const type of ["pointerover", "pointerout", "focusin", "focusout"]) addEventListener(type, lookSoon);
addEventListener(
  "touchstart",
  ({ target }) => {
    clearTimeout(lifted);
    finger = target;
  },
  { passive: true },
);
for (const type of ["touchend", "touchcancel"])
  addEventListener(type, () => {
    clearTimeout(lifted);
    lifted = setTimeout(() => {
      finger = null;
      lookSoon();
    }, FINGER_MS);
  });

interface Place {
  readonly current: Element | null;
}

function isInUse({ current }: Place): boolean {
  return (
    current !== null &&
    (current.matches(canHover.matches ? ":hover, :focus-within" : ":focus-within") ||
      (finger instanceof Node && current.contains(finger)))
  );
}

interface Options<T> {
  /** A further use of the list. */
  readonly isRead?: (list: Element | null) => boolean;
  /** What is added below the rows, while there is room, rather than held back. */
  readonly appends?: (item: T) => boolean;
}

/**
 * The rows to draw in the list that contains `place`. While it is in use, no row moves, comes or goes: rows that are over
 * are drawn as they were last, and `waiting` are new. `showAll` takes them in.
 */
export function useSteady<T>(
  place: Place,
  items: readonly T[],
  keyOf: (item: T) => string,
  { isRead, appends }: Options<T> = {},
) {
  const round = useSignal(0);
  void round.value;
  const drawn = useRef<readonly T[]>([]);
  const isUsed = () => isInUse(place) || isRead?.(place.current) === true;
  const wasUsed = useRef(false);
  useEffect(() => {
    const look = () => {
      if (wasUsed.current && !isUsed()) round.value += 1;
    };
    looks.add(look);
    return () => {
      looks.delete(look);
    };
  }, []);
  wasUsed.current = drawn.current.length > 0 && isUsed();
  const { rows, waiting } = wasUsed.current
    ? keepPlaces(drawn.current, items, keyOf, appends ?? (() => false))
    : { rows: items, waiting: 0 };
  drawn.current = rows;
  const showAll = () => {
    drawn.current = [];
    round.value += 1;
  };
  return { rows, waiting, isUsed: wasUsed.current, showAll };
}

interface NewsProps {
  readonly count: number;
  /** What is new: `question`. */
  readonly of: string;
  readonly onShow: () => void;
}

/** The button behind which new rows wait. It is over the list, so that it moves none. */
export function News({ count: number, of, onShow }: NewsProps) {
  return (
    number > 0 && (
      <div class="news">
        <button type="button" onClick={onShow}>
          {count(number, `new ${of}`)}
        </button>
      </div>
    )
  );
}
