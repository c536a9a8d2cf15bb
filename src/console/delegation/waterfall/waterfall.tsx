/**
 * A delegation, what is above and under it, and when each was in which state, over one axis of time; below, the events of
 * the row that is selected.
 */

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { sumUsage, usageText } from "../../../client/usage.ts";
import type { Delegation } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { adopt } from "../../app/adopt.ts";
import { go, hrefOf } from "../../app/route.ts";
import { now } from "../../data/clock.ts";
import { session } from "../../session/session.ts";
import { Problem } from "../../ui/problem.tsx";
import { News, useSteady } from "../../ui/steady.tsx";
import { useWindow } from "../../ui/windowed.tsx";
import { AxisHead, Over } from "./axis-head.tsx";
import { Note, useNote } from "./note.tsx";
import { NothingUnder } from "./nothing-under.tsx";
import { MAX_NODES } from "./read-tree.ts";
import { ROWGROUP, TREEGRID } from "./roles.ts";
import { WaterfallRow } from "./row.tsx";
import { RowEventList } from "./row-event-list.tsx";
import { RowEvents } from "./row-events.ts";
import { rowText } from "./row-text.ts";
import { rowsOf } from "./rows.ts";
import { useAxis } from "./use-axis.ts";
import { useRowKeys } from "./use-row-keys.ts";
import { useTree } from "./use-tree.ts";
import { styles } from "./waterfall.css";

adopt(styles);

interface Props {
  readonly delegation: Delegation;
  /** Null: not read yet. */
  readonly events: readonly DelegationEvent[] | null;
  readonly error: unknown;
}

export function Waterfall({ delegation, events, error }: Props) {
  const { id } = delegation;
  const rowEvents = useMemo(() => new RowEvents(() => session.peek()?.connection), []);
  const tree = useTree(delegation, (moves) => rowEvents.add(moves));
  const { above, nodes, isRead } = tree;
  const closed = useSignal<ReadonlySet<string>>(new Set());
  const selected = useSignal(id);
  const list = useRef<HTMLDivElement>(null);
  const all = useMemo(
    () => rowsOf({ above, nodes: nodes.values(), id, closed: closed.value }),
    [above, nodes, closed.value],
  );
  // While the tree is read for the first time, its rows come as they are found.
  const steady = useSteady(list, isRead ? all : [], ({ node }) => node.id);
  const rows = isRead ? steady.rows : all;
  const window = useWindow(list, rows.length);
  const { axis, isLive } = useAxis(delegation, nodes, events);
  const note = useNote();
  // A target never changes.
  const agents = useMemo(() => new Map([...nodes].map(([one, { target }]) => [one, target])), [nodes.size]);
  const row = rows.find(({ node }) => node.id === selected.value) ?? rows.find(({ node }) => node.id === id);
  const select = (one: string) => {
    selected.value = one;
  };
  const toggle = (one: string) => {
    const next = new Set(closed.value);
    if (!next.delete(one)) next.add(one);
    closed.value = next;
    steady.showAll();
  };
  const open = (one: string) => {
    if (one !== id) go(hrefOf(one));
  };
  const onKeyDown = useRowKeys({ list, rows, selected: row?.node.id ?? id, select, toggle, open });
  const grid = {
    ...TREEGRID,
    class: "fall-grid",
    "aria-label": "The delegation and its parts over time",
    "aria-rowcount": rows.length + 1,
    onKeyDown,
    ...note.handlers,
  };
  return (
    <div class="fall">
      <div class="fall-parts">
        <div class="fall-tree">
          {tree.missing !== null && (
            <p class="dim">
              {above[0] ? `The parent of ${above[0].target}` : "Its parent"} …{tree.missing.slice(-8)} was
              erased, or you may not see it.
            </p>
          )}
          <News of="delegation" count={isRead ? steady.waiting : 0} onShow={steady.showAll} />
          <div {...grid}>
            <AxisHead axis={axis} isLive={isLive} />
            <Over axis={axis} isLive={isLive}>
              <div
                {...ROWGROUP}
                ref={list}
                style={{ paddingTop: `${window.above}px`, paddingBottom: `${window.below}px` }}
              >
                {rows.slice(window.first, window.last).map((one, index) => (
                  <WaterfallRow
                    key={one.node.id}
                    row={one}
                    axis={axis}
                    rowEvents={rowEvents}
                    events={one.node.id === id ? (events ?? []) : null}
                    agents={agents}
                    index={window.first + index}
                    count={rows.length}
                    isSelected={one === row}
                    isCurrent={one.node.id === id}
                    onSelect={select}
                    onToggle={toggle}
                  />
                ))}
              </div>
            </Over>
          </div>
          <Note text={note.text} otherwise={row ? rowText(row, now.peek(), agents) : ""} />
          <Below delegation={delegation} tree={tree} />
        </div>
        {row && (
          <RowEventList
            key={row.node.id}
            node={row.node}
            given={row.node.id === id ? { events, error } : null}
          />
        )}
      </div>
    </div>
  );
}

interface BelowProps {
  readonly delegation: Delegation;
  readonly tree: ReturnType<typeof useTree>;
}

/** What there is to say about the tree as a whole. */
function Below({ delegation, tree: { nodes, isCut, isRead, error } }: BelowProps) {
  if (error !== null) return <Problem error={error} />;
  if (!isRead) return <p class="loading">Reading its parts …</p>;
  if (nodes.size === 1) return <NothingUnder delegation={delegation} />;
  const used = isCut ? undefined : sumUsage(nodes.values());
  return (
    <>
      {used && <p class="dim">Together: {usageText(used)}</p>}
      {isCut && (
        <p class="dim">
          Only {MAX_NODES.toLocaleString("en")} are shown. To see all: errand list --tree {delegation.id}
        </p>
      )}
    </>
  );
}
