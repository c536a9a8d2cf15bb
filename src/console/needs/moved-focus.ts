/**
 * The last move of the focus to a question that the reader did not make. A key that was meant for the question before
 * must not decide this one.
 */
const GRACE_MS = 1_000;

let moved: { readonly card: Element; readonly at: number } | undefined;

export function moveFocusTo(card: HTMLElement): void {
  moved = { card, at: performance.now() };
  card.focus();
}

export const hasJustMovedTo = (card: Element): boolean =>
  moved?.card === card && performance.now() - moved.at < GRACE_MS;
