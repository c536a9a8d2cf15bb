/** The reports of progress between two messages: one line with the latest, which opens to show the earlier ones. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { DelegationEvent } from "../../schema/event.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { count, stepOf } from "../ui/words.ts";

/** How many earlier reports are drawn at first, and how many more with each click. */
const STEP = 100;

export function Progress({ reports }: { readonly reports: readonly DelegationEvent[] }) {
  const isOpen = useSignal(false);
  const most = useSignal(STEP);
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
  const shown = earlier.slice(-most.value);
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
              <li>
                <button
                  type="button"
                  class="quiet"
                  onClick={() => {
                    most.value += STEP;
                  }}
                >
                  Show earlier ({count(earlier.length - shown.length, "report")})
                </button>
              </li>
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

function Report({ event }: { readonly event: DelegationEvent }) {
  const text = useMemo(() => textOf(event), [event]);
  return (
    <span class="report">
      <Said>{text}</Said> · <Age at={event.at} ago />
    </span>
  );
}

function textOf(event: DelegationEvent): string {
  const { message, ...progress } = event.status === "progress" ? event.progress : {};
  return [stepOf({ progress }), message].filter(Boolean).join(": ") || "progress";
}
