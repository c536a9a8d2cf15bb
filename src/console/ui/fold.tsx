/** Content that is shown whole, or says that it is cut and how to see the rest. It never scrolls by itself. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { styles } from "./fold.css";

adopt(styles);

/** In lines of 20 px, as in fold.css. Content that is longer by a few lines is shown whole. */
const MAX_LINES = 80;
const SLACK = 10;
const LINE_PX = 20;

export function Fold({ children }: { readonly children: ComponentChildren }) {
  const content = useRef<HTMLDivElement>(null);
  const lines = useSignal(0);
  const isOpen = useSignal(false);
  useLayoutEffect(() => {
    const { current } = content;
    if (!current) return;
    const measure = () => {
      lines.value = Math.round(current.offsetHeight / LINE_PX);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  const isLong = lines.value > MAX_LINES + SLACK;
  const isCut = isLong && !isOpen.value;
  /** The keyboard reaches also what is cut. */
  const openFor = ({ target, currentTarget }: FocusEvent) => {
    if (!isCut || !(target instanceof Element) || !(currentTarget instanceof Element)) return;
    if (target.getBoundingClientRect().top > currentTarget.getBoundingClientRect().bottom)
      isOpen.value = true;
  };
  return (
    <>
      <div class={isCut ? "fold cut" : "fold"} onFocusIn={openFor}>
        <div ref={content}>{children}</div>
      </div>
      {isLong && (
        <p class="fold-more">
          {isCut && <b>Only the first {MAX_LINES} lines are shown. </b>}
          <button
            type="button"
            aria-expanded={!isCut}
            onClick={() => {
              isOpen.value = isCut;
            }}
          >
            {isCut ? `Show all ${lines.value} lines` : "Show less"}
          </button>
        </p>
      )}
    </>
  );
}
