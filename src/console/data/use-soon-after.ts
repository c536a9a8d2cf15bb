import { useEffect, useRef } from "preact/hooks";
import type { DelegationEvent } from "../../schema/event.ts";
import { onEvents } from "./stream.ts";

/**
 * Acts soon after an event that concerns the component, or after events that are lost; at most once in `pauseMs`, because
 * there may be many.
 */
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
      if (timer !== undefined || events?.some(latest.current.concerns) === false) return;
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
