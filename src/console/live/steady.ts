/** Keeps rows in their places while somebody uses them. */

/** A touch screen goes on hovering where it was tapped last. */
const canHover = matchMedia("(hover: hover)");

export const isInUse = (list: Element | null | undefined): boolean =>
  list?.matches(canHover.matches ? ":focus-within, :hover" : ":focus-within") ?? false;
