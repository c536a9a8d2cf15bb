import { useComputed } from "@preact/signals";
import { timeLeft } from "../../client/words.ts";
import { now } from "../data/clock.ts";
import { elapsed, HOURS, largestUnit } from "./words.ts";

/** How long ago the instant was; the instant itself in the title. */
export function Age({ at, ago = false }: { readonly at: string; readonly ago?: boolean }) {
  const text = useComputed(() => `${largestUnit(now.value - Date.parse(at))}${ago ? " ago" : ""}`);
  return (
    <time dateTime={at} title={new Date(at).toLocaleString([], HOURS)}>
      {text}
    </time>
  );
}

/** The time from an instant to another, or to now. */
export function Elapsed({ from, to }: { readonly from: string; readonly to: string | null }) {
  const text = useComputed(() => elapsed((to === null ? now.value : Date.parse(to)) - Date.parse(from)));
  return (
    <time dateTime={from} title={`since ${new Date(from).toLocaleString([], HOURS)}`}>
      {text}
    </time>
  );
}

/** The time left until the instant: `2 min left`; `isBare`: without the last word. */
export function Left({ until, isBare = false }: { readonly until: string; readonly isBare?: boolean }) {
  const text = useComputed(() => `${timeLeft(Date.parse(until) - now.value)}${isBare ? "" : " left"}`);
  return (
    <time dateTime={until} title={`until ${new Date(until).toLocaleString([], HOURS)}`}>
      {text}
    </time>
  );
}
