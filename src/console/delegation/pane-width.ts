/** How wide the open delegation is, as the reader left it; this browser keeps it, and the frame applies it at its start. */
import { go, hrefWith, isWide, WIDE_KEY } from "../app/route.ts";

const PANE_KEY = "errand-pane";

/** In pixels; null: as the page chooses. */
export function setPaneWidth(pixels: number | null): void {
  const width = pixels === null ? "" : `${pixels}px`;
  document.documentElement.style.setProperty("--pane", width);
  localStorage.setItem(PANE_KEY, width);
}

/** Gives the open delegation the whole page, or a part of it again. */
export function toggleWide(): void {
  const wide = isWide.value ? "" : "yes";
  localStorage.setItem(WIDE_KEY, wide);
  go(hrefWith({ wide }), { replace: true });
}
