/**
 * The last time that the page, and not the reader, moved the focus to a question. A key that was meant for the previous
 * question must not decide this one.
 */
const GRACE_MS = 1_000;

let moved: { readonly card: Element; readonly at: number } | undefined;

export function moveFocusTo(card: HTMLElement): void {
  moved = { card, at: performance.now() };
  card.focus();
}

export const hasJustMovedTo = (card: Element): boolean =>
  moved?.card === card && performance.now() - moved.at < GRACE_MS;
