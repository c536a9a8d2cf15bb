/** One action of a component at a time: whether it runs, and how it failed. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { checkSession } from "../session/session.ts";

export function useAction() {
  const running = useSignal(false);
  const error = useSignal<unknown>(null);
  const last = useRef<() => Promise<unknown>>(async () => undefined);
  const again = async (): Promise<void> => {
    if (running.value) return;
    running.value = true;
    error.value = null;
    try {
      await last.current();
    } catch (failure) {
      checkSession(failure);
      error.value = failure;
    }
    running.value = false;
  };
  const run = (work: () => Promise<unknown>): Promise<void> => {
    if (running.value) return Promise.resolve();
    last.current = work;
    return again();
  };
  return {
    isRunning: running.value,
    error: error.value,
    run,
    /** Repeats the last action, for `Problem`. Only for one that may be repeated when its answer was lost. */
    again: () => void again(),
  };
}
