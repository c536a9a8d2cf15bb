/** The edge between the view and the open delegation: dragged, or moved by the arrow keys, it changes the widths of both. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { setPaneWidth } from "./pane-width.ts";

/** In pixels, as in layout.css: the least width of the delegation, and of the view beside it. */
const LEAST = 360;
const LEAST_VIEW = 380;
/** How far an arrow key moves the edge. */
const STEP = 32;

export function PaneEdge() {
  const edge = useRef<HTMLHRElement>(null);
  const size = useSignal({ now: LEAST, most: LEAST });
  const isDragged = useSignal(false);
  useEffect(() => {
    const view = edge.current?.parentElement?.previousElementSibling;
    const pane = edge.current?.nextElementSibling;
    if (!view || !pane) return;
    const measure = () => {
      const now = Math.round(pane.getBoundingClientRect().width);
      const rest = Math.round(view.getBoundingClientRect().width);
      size.value = { now, most: Math.max(LEAST, now + rest - LEAST_VIEW) };
    };
    const observer = new ResizeObserver(measure);
    observer.observe(view);
    observer.observe(pane);
    return () => observer.disconnect();
  }, []);
  const { now, most } = size.value;
  const set = (width: number) => setPaneWidth(Math.round(Math.min(most, Math.max(LEAST, width))));
  const widths: Readonly<Record<string, number>> = {
    ArrowLeft: now + STEP,
    ArrowRight: now - STEP,
    Home: LEAST,
    End: most,
  };
  return (
    <hr
      ref={edge}
      class={`pane-edge ${isDragged.value ? "dragged" : ""}`}
      aria-label="Width of the delegation"
      aria-orientation="vertical"
      aria-valuenow={now}
      aria-valuemin={LEAST}
      aria-valuemax={most}
      aria-valuetext={`${now} pixels`}
      title="Drag to change the width; double-click to reset it"
      tabIndex={0}
      onKeyDown={(event) => {
        const width = widths[event.key];
        if (width === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        set(width);
      }}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        // No text is selected meanwhile.
        event.preventDefault();
        event.currentTarget.focus();
        event.currentTarget.setPointerCapture(event.pointerId);
        isDragged.value = true;
      }}
      onPointerMove={(event) => {
        const pane = event.currentTarget.nextElementSibling;
        if (isDragged.value && pane) set(pane.getBoundingClientRect().right - event.clientX);
      }}
      onLostPointerCapture={() => {
        isDragged.value = false;
      }}
      onDblClick={() => setPaneWidth(null)}
    />
  );
}
