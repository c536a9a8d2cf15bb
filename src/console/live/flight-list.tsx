import type { Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Flight } from "../data/flight.ts";
import { inView } from "../data/flights.ts";
import { News, useSteady } from "../ui/steady.tsx";
import { FlightRow } from "./flight-row.tsx";

/** The rows, newest first. They keep their places also while somebody reads further down. */
export function FlightList() {
  const list = useRef<HTMLDivElement>(null);
  const { rows, waiting, showAll } = useSteady(list, inView.value, idOf, { isRead: isScrolledDown });
  const show = () => {
    showAll();
    list.current?.closest(".column")?.scrollTo({ top: 0 });
  };
  return (
    <div class="steady" ref={list}>
      <News count={waiting} onShow={show} />
      <ul class="rows">
        {rows.map((flight) => (
          <li key={idOf(flight)}>
            <FlightRow flight={flight} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const idOf = (flight: Signal<Flight>): string => flight.peek().id;

const isScrolledDown = (list: Element | null): boolean =>
  (list?.closest(".column")?.scrollTop ?? 0) > 8 || scrollY > 8;
