/** A wait for an event of one delegation, and that nothing of it remains. read.test.ts tests the waiting reads. */
import { expect, test } from "vitest";
import { waitUntil } from "../../../src/engine/events/wait.ts";
import type { AbortListener, StopSignal } from "../../../src/util/stop-signal.ts";
import { startBroker } from "../../support/broker.ts";

/** Takes the place of a request. */
class Caller implements StopSignal {
  readonly listeners = new Set<AbortListener>();
  aborted = false;

  addEventListener(_: "abort", listener: AbortListener): void {
    this.listeners.add(listener);
  }
  removeEventListener(_: "abort", listener: AbortListener): void {
    this.listeners.delete(listener);
  }
  leave(): void {
    this.aborted = true;
    for (const listener of this.listeners) listener.handleEvent();
  }
}

async function waiting(signal: StopSignal, wait_seconds = 60) {
  const { broker } = (await startBroker()).gateway;
  return waitUntil(broker.feed, "dlg_0_a", { wait_seconds, signal }, () => true);
}

test.each<[string, number, (caller: Caller, stop: () => void) => void]>([
  ["its time is up", 0.01, () => {}],
  ["its caller leaves", 60, (caller) => caller.leave()],
  ["it is stopped", 60, (_, stop) => stop()],
])("a wait ends when %s, and leaves no listener on the signal", async (_, wait_seconds, end) => {
  const caller = new Caller();
  const { done, stop } = await waiting(caller, wait_seconds);
  expect(caller.listeners.size).toBe(1);
  end(caller, stop);
  await done;
  expect(caller.listeners.size).toBe(0);
});

test("a caller that has left before the wait does not wait", async () => {
  const caller = new Caller();
  caller.leave();
  await (await waiting(caller)).done;
  expect(caller.listeners.size).toBe(0);
});

test("an AbortSignal ends a wait, too", async () => {
  const controller = new AbortController();
  const { done } = await waiting(controller.signal);
  controller.abort();
  await done;
});
