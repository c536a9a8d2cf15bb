/** The events of a delegation: newest first while it is live, so that the present is at the top; then in their order. */
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { isTerminal } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { Said } from "../../ui/said.tsx";
import { News, useSteady } from "../../ui/steady.tsx";
import { Windowed } from "../../ui/windowed.tsx";
import { count, HOURS } from "../../ui/words.ts";
import { eventText, offsetText, pauseText, runText, toneOf } from "../event-text.ts";
import { type Line, linesOf } from "./fold.ts";
import type { Node } from "./node.ts";

interface Props {
  readonly node: Node;
  /** Null: not read yet. */
  readonly events: readonly DelegationEvent[] | null;
}

export function EventList({ node, events }: Props) {
  const chosen = useSignal<boolean | null>(null);
  const open = useSignal<ReadonlySet<string>>(new Set());
  const list = useRef<HTMLDivElement>(null);
  const newestFirst = chosen.value ?? !isTerminal(node.state);
  const lines = useMemo(
    () => linesOf(events ?? [], open.value, newestFirst),
    [events, open.value, newestFirst],
  );
  const { rows, waiting, showAll } = useSteady(list, lines, ({ key }) => key, {
    appends: () => !newestFirst,
  });
  const start = Date.parse(events?.[0]?.at ?? "");
  const length = Date.parse(events?.at(-1)?.at ?? "") - start;
  const toggle = (key: string) => {
    const next = new Set(open.value);
    if (!next.delete(key)) next.add(key);
    open.value = next;
    showAll();
  };
  return (
    <section class="fall-events" aria-label={`Events of ${node.target}`}>
      <div class="fall-events-head">
        <h2>
          Events <small>{events ? `of ${node.target}, ${count(events.length, "event")}` : ""}</small>
        </h2>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            chosen.value = !newestFirst;
            showAll();
          }}
        >
          {newestFirst ? "Oldest first" : "Newest first"}
        </button>
      </div>
      {events === null ? (
        <p class="loading">Reading the events …</p>
      ) : events.length === 0 ? (
        <p class="dim">Its events are no longer stored.</p>
      ) : (
        <div ref={list} class="steady">
          <News of="event" count={waiting} onShow={showAll} />
          <Windowed items={rows} keyOf={({ key }) => key}>
            {(line) => (
              <EventLine
                line={line}
                offset={offsetText(Date.parse(line.event.at) - start, length)}
                isOpen={open.value.has(line.key)}
                onToggle={toggle}
              />
            )}
          </Windowed>
        </div>
      )}
    </section>
  );
}

interface LineProps {
  readonly line: Line;
  readonly offset: string;
  readonly isOpen: boolean;
  readonly onToggle: (key: string) => void;
}

function EventLine({ line, offset, isOpen, onToggle }: LineProps) {
  const { event, pauseMs, times, isInRun, key } = line;
  const at = new Date(event.at);
  const pause = pauseText(pauseMs);
  return (
    <div class={`event ${toneOf(event)} ${isInRun ? "in-run" : ""}`} title={event.status ?? event.type}>
      <time class="event-at" dateTime={event.at} title={at.toLocaleString([], HOURS)}>
        {offset}
      </time>
      <span class="event-clock">{at.toLocaleTimeString([], { ...HOURS, timeStyle: "medium" })}</span>
      <span class="event-what">
        {times > 1 && (
          <button
            type="button"
            class="quiet event-more"
            aria-expanded={isOpen}
            aria-label={`${times.toLocaleString("en")} times: show each`}
            onClick={() => onToggle(key)}
          >
            {isOpen ? "▾" : "▸"}
          </button>
        )}
        <Said>{times > 1 ? runText(event, times) : eventText(event)}</Said>
        {pause !== "" && <small class="event-gap"> after {pause}</small>}
      </span>
    </div>
  );
}
