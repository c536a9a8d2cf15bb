/** Content that is shown whole, or says that it is cut and how to see the rest. It never scrolls by itself. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { styles } from "./fold.css";

adopt(styles);

/** Lines of 20 px, as in fold.css. Content that is longer by an eighth is shown whole. */
const MAX_LINES = 80;
const SLACK = 1 / 8;
const LINE_PX = 20;

interface Props {
  readonly children: ComponentChildren;
  /** After so many lines it is cut. Where nothing is decided, the button says enough. */
  readonly lines?: number;
}

export function Fold({ children, lines: most }: Props) {
  const max = most ?? MAX_LINES;
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
  const isLong = lines.value > max * (1 + SLACK);
  const isCut = isLong && !isOpen.value;
  /** The keyboard reaches also what is cut. */
  const openFor = ({ target, currentTarget }: FocusEvent) => {
    if (!isCut || !(target instanceof Element) || !(currentTarget instanceof Element)) return;
    if (target.getBoundingClientRect().top > currentTarget.getBoundingClientRect().bottom)
      isOpen.value = true;
  };
  return (
    <>
      <div
        class={isCut ? "fold cut" : "fold"}
        style={isCut ? { maxHeight: `${max * LINE_PX}px` } : {}}
        onFocusIn={openFor}
      >
        <div ref={content}>{children}</div>
      </div>
      {isLong && (
        <p class="fold-more">
          {isCut && most === undefined && <b>Only the first {max} lines are shown. </b>}
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
