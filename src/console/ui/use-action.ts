/** One action of a component at a time: whether it runs, and how it failed. */
import { useSignal } from "@preact/signals";
import { checkSession } from "../session/session.ts";

export function useAction() {
  const running = useSignal(false);
  const error = useSignal<unknown>(null);
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    if (running.value) return;
    running.value = true;
    error.value = null;
    try {
      await work();
    } catch (failure) {
      checkSession(failure);
      error.value = failure;
    }
    running.value = false;
  };
  return { isRunning: running.value, error: error.value, run };
}
