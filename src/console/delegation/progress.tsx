/** The progress reports between two messages: one line with the latest, which opens to those before it. */
import { useSignal } from "@preact/signals";
import * as z from "zod";
import { progressSchema } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { count, stepOf } from "../ui/words.ts";

/** The most reports that are drawn before the latest; the timeline has all. */
const SHOWN = 100;

/** The reports before each of the instants, and after the last one. A null instant takes none. */
export function reportsBetween(
  events: readonly DelegationEvent[],
  instants: readonly (string | null)[],
): readonly (readonly DelegationEvent[])[] {
  const reports = events.filter(({ status }) => status === "progress");
  let from = 0;
  const groups = instants.map((instant) => {
    const start = from;
    while (instant !== null && (reports[from]?.at ?? "~") <= instant) from += 1;
    return reports.slice(start, from);
  });
  return [...groups, reports.slice(from)];
}

export function Progress({ reports }: { readonly reports: readonly DelegationEvent[] }) {
  const isOpen = useSignal(false);
  const latest = reports.at(-1);
  if (latest === undefined) return null;
  const earlier = reports.slice(0, -1);
  if (earlier.length === 0) {
    return (
      <li class="reports">
        <Report event={latest} />
      </li>
    );
  }
  const shown = earlier.slice(-SHOWN);
  return (
    <li class="reports">
      <details
        onToggle={({ currentTarget }) => {
          isOpen.value = currentTarget.open;
        }}
      >
        <summary>
          <Report event={latest} />
          <small>· {count(earlier.length, "earlier report")}</small>
        </summary>
        {isOpen.value && (
          <ol>
            {shown.length < earlier.length && (
              <li>{count(earlier.length - shown.length, "report")} before these: see the timeline.</li>
            )}
            {shown.map((event) => (
              <li key={event.seq}>
                <Report event={event} />
              </li>
            ))}
          </ol>
        )}
      </details>
    </li>
  );
}

const eventSchema = z.object({ progress: progressSchema });

function Report({ event }: { readonly event: DelegationEvent }) {
  return (
    <span class="report">
      <Said>{textOf(event)}</Said> · <Age at={event.at} ago />
    </span>
  );
}

function textOf(event: DelegationEvent): string {
  const { message, ...progress } = eventSchema.safeParse(event).data?.progress ?? {};
  return [stepOf({ progress }), message].filter(Boolean).join(": ") || "progress";
}
