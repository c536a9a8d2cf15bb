/**
 * Turns SIGINT, SIGTERM and SIGHUP into an AbortSignal: the first one aborts, the second one ends the process.
 * Limit: one body at a time; the listeners are global.
 */
import { Interrupted, type SIGNALS } from "./failure.ts";

/**
 * Runs `body`; its signal aborts with {@link Interrupted}. On a second signal `force` cleans up what must not
 * outlive the process, and the process ends.
 */
export async function interruptible<T>(
  body: (signal: AbortSignal) => Promise<T>,
  force: () => void = () => undefined,
): Promise<T> {
  const controller = new AbortController();
  const on = (name: keyof typeof SIGNALS) => {
    const handler = () => {
      const reason = new Interrupted(name);
      if (controller.signal.aborted) {
        force();
        process.exit(reason.exitCode);
      }
      controller.abort(reason);
    };
    process.on(name, handler);
    return () => process.off(name, handler);
  };
  const offs = [on("SIGHUP"), on("SIGINT"), on("SIGTERM")];
  try {
    return await body(controller.signal);
  } finally {
    for (const off of offs) off();
  }
}
