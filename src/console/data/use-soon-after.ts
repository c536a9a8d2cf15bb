import { useEffect, useRef } from "preact/hooks";
import type { DelegationEvent } from "../../schema/event.ts";
import { onEvents } from "./stream.ts";

/** Acts soon after an event that concerns the component, at most once in `pauseMs`: there may be many events. */
export function useSoonAfter(
  concerns: (event: DelegationEvent) => boolean,
  act: () => void,
  pauseMs: number,
): void {
  const latest = useRef({ concerns, act });
  latest.current = { concerns, act };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const quiet = onEvents((events) => {
      if (timer !== undefined || !events.some(latest.current.concerns)) return;
      timer = setTimeout(() => {
        timer = undefined;
        latest.current.act();
      }, pauseMs);
    });
    return () => {
      quiet();
      clearTimeout(timer);
    };
  }, [pauseMs]);
}
