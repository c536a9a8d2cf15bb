/** Where the page's controls are, and which of them moved, appeared or went a moment ago without the reader's doing. */

/** For so long after a move, the reader has not seen it. */
const CALM_MS = 500;
/** What has been there for less was not aimed at yet: the page is still loading. */
const SEEN_MS = 300;
/** In pixels; less is still the same place. */
const SAME = 6;
const CONTROLS = "a[href], button, summary, [type=checkbox], [type=radio], [role=option]";
/** What scrolls beside the page itself. */
const SCROLLERS = ".inbox-list, .inbox-detail, .column";
/** Where a control acts on one of many things that look alike. */
const ROWS = "[data-question], [data-row], .rows, .steady";

interface Place {
  readonly box: DOMRect;
  /** How far its column is scrolled. */
  readonly scrolled: number;
  /** Since when it is in view. */
  readonly seenAt: number;
  /** When it moved among the others. */
  readonly movedAt: number;
  /** When it appeared, or moved with everything else in its column. */
  readonly cameAt: number;
}

interface Trace extends Pick<Place, "box"> {
  readonly control: Element;
  readonly at: number;
}

/** When each question came. */
const cards = new WeakMap<Element, number>();
const places = new Map<Element, Place>();
/** Where other controls were until a moment ago. */
let traces: Trace[] = [];

export const controlOf = (target: EventTarget | null): Element | null => {
  const found = target instanceof Element ? target.closest(`${CONTROLS}, label`) : null;
  if (!(found instanceof HTMLLabelElement)) return found;
  return found.control?.matches(CONTROLS) ? found.control : null;
};

export function forgetPlaces(): void {
  places.clear();
  traces = [];
}

/** Compares every control in view with where it was. `isOwn`: the reader's doing moved them. */
export function look(isOwn: boolean): void {
  const at = performance.now();
  traces = traces.filter((trace) => at - trace.at < CALM_MS);
  const isFirst = places.size === 0;
  const before = new Map(places);
  places.clear();
  // Also those out of view, which the reader may scroll to.
  for (const card of document.querySelectorAll("[data-question]"))
    if (!cards.has(card)) cards.set(card, isFirst ? 0 : at);
  for (const control of document.querySelectorAll(CONTROLS)) {
    const box = control.getBoundingClientRect();
    if (box.width === 0 || box.bottom < 0 || box.top > innerHeight) continue;
    const scrolled = (control.closest(SCROLLERS)?.scrollTop ?? 0) + scrollY;
    const was = before.get(control);
    before.delete(control);
    // Whatever the reader did, a question comes by itself: the reader meant another.
    const isExcused = isFirst || (isOwn && !isNewCard(control.closest("[data-question]"), at));
    const place = was
      ? { ...was, box, scrolled }
      : { box, scrolled, seenAt: at, movedAt: 0, cameAt: isExcused ? 0 : at };
    const isMoved = was && !isOwn && at - was.seenAt > SEEN_MS && isApart(was.box, box);
    if (isMoved) traces.push({ control, box: was.box, at });
    const isShifted = isMoved && isApart(was.box, box, scrolled - was.scrolled);
    places.set(control, isShifted ? { ...place, movedAt: at } : isMoved ? { ...place, cameAt: at } : place);
  }
  if (isOwn) return;
  for (const [control, { box, seenAt }] of before)
    if (!control.isConnected && at - seenAt > SEEN_MS) traces.push({ control, box, at });
}

function isNewCard(card: Element | null, at: number): boolean {
  return card !== null && at - (cards.get(card) ?? at) < CALM_MS;
}

/** `scrolled`: by how much the column was scrolled in between. */
const isApart = (a: DOMRect, b: DOMRect, scrolled = 0): boolean =>
  Math.abs(a.top - b.top - scrolled) > SAME || Math.abs(a.left - b.left) > SAME;

/** Whether the reader may have meant something else at this point, where the pointer has been since `restsSince`. */
export function isSurprise(control: Element, x: number, y: number, restsSince: number): boolean {
  const place = places.get(control);
  if (!place) return false;
  const calmSince = performance.now() - CALM_MS;
  const { movedAt, cameAt } = place;
  const isUnder = Math.max(movedAt, cameAt) > Math.max(calmSince, restsSince);
  if (isUnder || control.closest(ROWS) === null) return isUnder;
  // A row is large: that another was here counts, and not that it moved a little.
  return (
    (control.localName !== "a" && movedAt > calmSince) ||
    traces.some((trace) => trace.control !== control && trace.at > calmSince && has(trace.box, x, y))
  );
}

const has = (box: DOMRect, x: number, y: number): boolean =>
  box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
