/** One delegation, read again soon after each of its events. */
import { useEffect } from "preact/hooks";
import { onEvents } from "../data/stream.ts";
import { useLoaded } from "../ui/use-loaded.ts";

/** An agent may report progress many times a second. */
const PAUSE_MS = 250;

export function useDelegation(id: string) {
  const loaded = useLoaded(id, ({ delegator }, signal) => delegator.get(id, { signal }));
  const { reload } = loaded;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const quiet = onEvents((events) => {
      if (timer !== undefined || !events.some((event) => event.delegation_id === id)) return;
      timer = setTimeout(() => {
        timer = undefined;
        reload();
      }, PAUSE_MS);
    });
    return () => {
      quiet();
      clearTimeout(timer);
    };
  }, [id]);
  return loaded;
}
