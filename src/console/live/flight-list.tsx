import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Flight } from "../data/flight.ts";
import { inView } from "../data/flights.ts";
import { FlightRow } from "./flight-row.tsx";

/**
 * The rows, newest first. New ones enter at the top only while nobody reads further down or holds the focus; otherwise a
 * button counts them, so that no row moves while the reader uses it.
 */
export function FlightList() {
  const list = useRef<HTMLUListElement>(null);
  const known = useSignal<ReadonlySet<string>>(new Set());
  const isBusy = () => list.current?.contains(document.activeElement) || scrolledDown(list.current);
  const all = inView.value;
  const fresh =
    known.value.size > 0 && isBusy() ? all.filter((flight) => !known.value.has(idOf(flight))) : [];
  const shown = all.filter((flight) => !fresh.includes(flight));
  if (fresh.length === 0 && all.some((flight) => !known.value.has(idOf(flight)))) {
    queueMicrotask(() => {
      known.value = new Set(all.map(idOf));
    });
  }
  const showAll = () => {
    known.value = new Set(all.map(idOf));
    list.current?.closest(".column")?.scrollTo({ top: 0 });
  };
  return (
    <>
      {fresh.length > 0 && (
        <button type="button" class="news" onClick={showAll}>
          {fresh.length} new
        </button>
      )}
      <ul class="rows" ref={list}>
        {shown.map((flight) => (
          <li key={idOf(flight)}>
            <FlightRow flight={flight} />
          </li>
        ))}
      </ul>
    </>
  );
}

const idOf = (flight: Signal<Flight>): string => flight.peek().id;

const scrolledDown = (list: HTMLElement | null): boolean =>
  (list?.closest(".column")?.scrollTop ?? 0) > 8 || scrollY > 8;
