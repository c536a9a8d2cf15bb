/** The keys of a waterfall: up and down between the rows, left and right to close and open, Enter to go there. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Row } from "./rows.ts";

interface Options {
  readonly list: RefObject<HTMLElement | null>;
  readonly rows: readonly Row[];
  readonly selected: string;
  readonly select: (id: string) => void;
  readonly toggle: (id: string) => void;
  readonly open: (id: string) => void;
}

const PAGE = 10;

export function useRowKeys({ list, rows, selected, select, toggle, open }: Options) {
  /** The row to focus once it is drawn. */
  const wanted = useRef<string | null>(null);
  useEffect(() => {
    if (wanted.current === null) return;
    const row = list.current?.querySelector<HTMLElement>(`[data-id="${wanted.current}"]`);
    if (!row) return;
    wanted.current = null;
    row.focus();
  });
  return (event: KeyboardEvent): void => {
    const { target, key } = event;
    if (!(target instanceof HTMLElement) || target.closest("[role=row]") === null) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = rows.findIndex(({ node }) => node.id === selected);
    const row = rows[at];
    if (row === undefined) return;
    // On a link or a button, Enter is its own.
    if (key === "Enter" && target.getAttribute("role") !== "row") return;
    const goTo = (index: number) => {
      const next = rows[Math.min(Math.max(index, 0), rows.length - 1)];
      if (!next) return;
      wanted.current = next.node.id;
      select(next.node.id);
      bringNear(list.current, next.node.id, index);
    };
    const isParent = row.below > 0;
    const parent = rows.findLastIndex(({ level }, index) => index < at && level < row.level);
    const actions: Readonly<Record<string, () => void>> = {
      ...{ ArrowDown: () => goTo(at + 1), j: () => goTo(at + 1) },
      ...{ ArrowUp: () => goTo(at - 1), k: () => goTo(at - 1) },
      ...{ Home: () => goTo(0), End: () => goTo(rows.length - 1) },
      ...{ PageUp: () => goTo(at - PAGE), PageDown: () => goTo(at + PAGE) },
      ArrowRight: () => (isParent && !row.isOpen ? toggle(row.node.id) : isParent && goTo(at + 1)),
      ArrowLeft: () => (isParent && row.isOpen ? toggle(row.node.id) : parent >= 0 && goTo(parent)),
      Enter: () => open(row.node.id),
    };
    const action = Object.hasOwn(actions, key) ? actions[key] : undefined;
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
}

/** Of many rows, only those near the view are drawn, and can have the focus. */
function bringNear(list: HTMLElement | null, id: string, index: number): void {
  if (!list || list.querySelector(`[data-id="${id}"]`)) return;
  const scroller = list.closest("[role=treegrid]");
  const row = list.querySelector<HTMLElement>("[role=row]");
  if (scroller && row) scroller.scrollTop = index * row.offsetHeight;
}
