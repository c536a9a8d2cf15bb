/** A row of a waterfall: who does what at the left, the bars over the axis, how long it took at the right. */

import { useEffect, useMemo } from "preact/hooks";
import type { DelegationEvent } from "../../../schema/event.ts";
import { hrefOf } from "../../app/route.ts";
import { now } from "../../data/clock.ts";
import { Elapsed } from "../../ui/age.tsx";
import { Said } from "../../ui/said.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { PHASES } from "../../ui/words.ts";
import type { Axis } from "./axis.ts";
import type { Node } from "./node.ts";
import { type Question, questionsOf } from "./questions.ts";
import { CELL, ROW } from "./roles.ts";
import type { RowEvents } from "./row-events.ts";
import { type Agents, lengthText, questionText, rowText, spanText, toggleText } from "./row-text.ts";
import type { Row } from "./rows.ts";
import { type Span, spansOf, visibleSpans } from "./spans.ts";

/** The newest; more would cover each other. */
const MAX_MARKS = 50;

interface Props {
  readonly row: Row;
  readonly axis: Axis;
  readonly rowEvents: RowEvents;
  /** The events of the delegation that the waterfall is of; null: the row reads its own. */
  readonly events: readonly DelegationEvent[] | null;
  readonly agents: Agents;
  readonly index: number;
  readonly count: number;
  readonly isSelected: boolean;
  readonly isCurrent: boolean;
  readonly onSelect: (id: string) => void;
  readonly onToggle: (id: string) => void;
}

export function WaterfallRow(props: Props) {
  const { row, axis, rowEvents, events, agents, index, count, isSelected, isCurrent, onSelect, onToggle } =
    props;
  const { node, level, below, isOpen } = row;
  const { id, version } = node;
  useEffect(() => {
    if (events === null) rowEvents.want({ id, version });
  }, [id, version, events === null]);
  const known = events ?? rowEvents.shown(id).value;
  const itself = {
    ...ROW,
    class: `fall-row ${row.isAbove ? "above" : ""}`,
    tabIndex: isSelected ? 0 : -1,
    "data-id": id,
    "aria-level": level,
    "aria-rowindex": index + 2,
    "aria-selected": isSelected,
    "aria-expanded": below > 0 ? isOpen : undefined,
    "aria-label": rowText(row, now.peek(), agents),
    onClick: () => onSelect(id),
    onFocus: () => onSelect(id),
  };
  return (
    <div {...itself}>
      <div {...CELL} class="fall-name">
        <Branch row={row} />
        {below > 0 ? (
          <button
            type="button"
            class="quiet fall-toggle"
            tabIndex={-1}
            aria-label={toggleText(row)}
            onClick={(event) => {
              event.stopPropagation();
              onToggle(id);
            }}
          >
            {isOpen ? "▾" : "▸"}
          </button>
        ) : (
          count > 1 && <span class="fall-toggle" />
        )}
        <StateMark phase={PHASES[node.state]} />
        <a
          class="fall-link"
          href={hrefOf(id)}
          tabIndex={isSelected ? 0 : -1}
          aria-current={isCurrent ? "true" : undefined}
          onClick={(event) => event.stopPropagation()}
        >
          <b>{node.target}</b>
          <span class="fall-task">
            <Said>{node.task}</Said>
          </span>
        </a>
        {row.isOrphan && <small>its parent is gone, or hidden from you</small>}
        {!isOpen && below > 0 && <small class="fall-hidden">+{below.toLocaleString("en")}</small>}
      </div>
      <div {...CELL} class="fall-bars">
        <Bars node={node} events={known} axis={axis} agents={agents} isSelected={isSelected} />
      </div>
      <div {...CELL} class="fall-time">
        {node.finished_at === null ? (
          <Elapsed from={node.created_at} to={null} />
        ) : (
          lengthText(Date.parse(node.finished_at) - Date.parse(node.created_at))
        )}
      </div>
    </div>
  );
}

/** The lines from the parent: ├─ or └─, and what goes on beside them. */
function Branch({ row: { lines, isLast, level } }: { readonly row: Row }) {
  if (level === 1) return null;
  return (
    <span class="fall-branch" aria-hidden="true">
      {lines.map((goesOn, index) => (
        <i key={index} class={goesOn ? "on" : ""} />
      ))}
      <i class={isLast ? "end" : "on turn"} />
    </span>
  );
}

interface BarsProps {
  readonly node: Node;
  readonly events: readonly DelegationEvent[];
  readonly axis: Axis;
  readonly agents: Agents;
  readonly isSelected: boolean;
}

function Bars({ node, events, axis, agents, isSelected }: BarsProps) {
  const { place, start, end } = axis;
  const drawn = useMemo(() => {
    const spans = visibleSpans(
      spansOf(node, events).filter((span) => span.from <= end && (span.to ?? end) >= start),
      place,
    );
    return spans.map((span) => <Bar key={`${span.from} ${span.look}`} {...{ span, node, axis, agents }} />);
  }, [node, events, axis, agents]);
  const questions = events.length > 0 ? questionsOf(events) : node.questions;
  const ended = node.finished_at === null ? null : Date.parse(node.finished_at);
  return (
    <div class="fall-lane">
      {drawn}
      {questions.slice(-MAX_MARKS).map((question) => (
        <Mark key={question.id} question={question} axis={axis} canFocus={isSelected} />
      ))}
      {ended !== null && ended >= start && (
        <span class="fall-end" style={{ insetInlineStart: percent(place(ended)) }}>
          <StateMark phase={PHASES[node.state]} />
        </span>
      )}
    </div>
  );
}

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`;

interface BarProps extends Pick<BarsProps, "node" | "axis" | "agents"> {
  readonly span: Span;
}

function Bar({ span, node, axis, agents }: BarProps) {
  const { look, from, to } = span;
  const at = axis.place(from);
  const isEarlier = from < axis.start;
  return (
    <span
      class={`fall-bar ${look} ${to === null ? "goes-on" : ""} ${isEarlier ? "earlier" : ""}`}
      data-note={spanText(span, node, axis.start, agents)}
      style={{
        "--at": at.toFixed(4),
        insetInlineStart: percent(at),
        // Without an end, it reaches to the line of now.
        ...(to !== null && { width: percent(axis.place(to) - at) }),
      }}
    />
  );
}

interface MarkProps {
  readonly question: Question;
  readonly axis: Axis;
  readonly canFocus: boolean;
}

function Mark({ question, axis, canFocus }: MarkProps) {
  const text = questionText(question, axis.start);
  const at = question.askedAt ?? question.answeredAt ?? axis.start;
  if (at < axis.start || at > axis.end) return null;
  return (
    <button
      type="button"
      class={`fall-mark ${question.outcome === "" ? "open" : ""}`}
      tabIndex={canFocus ? 0 : -1}
      aria-label={text}
      data-note={text}
      style={{ insetInlineStart: percent(axis.place(at)) }}
    >
      <StateMark phase="asks" />
    </button>
  );
}
