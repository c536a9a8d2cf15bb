/** Shows during a wait what the delegation does, and why no worker takes it. A failure here does not end the wait. */
import { Delegator } from "../client/delegator.ts";
import type { ConnectionOptions } from "../client/http.ts";
import type { Delegation } from "../schema/delegation.ts";
import type { DelegationEvent, StreamEvent } from "../schema/event.ts";
import { sleep } from "../util/timing.ts";
import type { CliHost } from "./host.ts";
import { note, stateText } from "./show/output.ts";
import { waits, whyWaits } from "./show/state-details.ts";
import type { StatusLine } from "./show/status-line.ts";
import { type WaitStatus, waitText } from "./show/wait-text.ts";

/** Often a worker has the delegation before this; then there is nothing to explain. */
const WHY_AFTER_MS = 1000;
const WHY_EVERY_MS = 5000;

export class WaitLine {
  readonly #line: StatusLine;
  readonly #connection: ConnectionOptions;
  #status: WaitStatus = { state: "submitted" };
  /** What the line explains now. */
  #explained: Delegation | DelegationEvent | undefined;

  constructor(line: StatusLine, connection: ConnectionOptions) {
    this.#line = line;
    this.#connection = connection;
    this.#say(this.#status);
  }

  /** Says what happens to the broker, not to the delegation. */
  retrying(code: string): void {
    this.#say({ state: `the broker is unavailable (${code}), retrying` });
  }

  pause(): void {
    this.#line.pause();
  }

  resume(): void {
    this.#line.resume();
  }

  /** Shows the delegation's events until the signal. `onEvent` gets each of them. */
  async follow(id: string, signal: AbortSignal, onEvent: (event: StreamEvent) => void): Promise<void> {
    try {
      for await (const event of new Delegator(this.#connection).watch(id, { signal })) {
        onEvent(event);
        if (event.type === "RESET") continue;
        const what = event.type === "DELEGATION_SNAPSHOT" ? event.delegation : event;
        this.#say(statusOf(what, this.#status.attempt));
        void this.#explain(what, signal);
      }
    } catch {
      // The wait itself makes the same calls and reports their errors.
    }
  }

  /** The reason may change without an event: a delay ends, the last worker leaves. */
  async #explain(what: Delegation | DelegationEvent, signal: AbortSignal): Promise<void> {
    this.#explained = what;
    const status = this.#status;
    while (waits(what.state)) {
      const why = await whyWaits(this.#connection, what, signal).catch(() => null);
      if (signal.aborted || this.#explained !== what) return;
      if (why !== null) this.#say({ ...status, why });
      await sleep(WHY_EVERY_MS, signal).catch(() => undefined);
      if (signal.aborted || this.#explained !== what) return;
    }
  }

  #say(status: WaitStatus): void {
    const at = performance.now();
    this.#status = status;
    this.#line.say((elapsedMs, columns) =>
      waitText(status, { elapsedMs, ageMs: performance.now() - at }, columns),
    );
  }
}

/** `attempt`: the last one that was shown, because some events do not say it. */
function statusOf(what: Delegation | DelegationEvent, attempt: number | undefined): WaitStatus {
  return {
    state: stateText(what.state),
    attempt: "attempt" in what ? what.attempt : attempt,
    progress: ("progress" in what && what.progress) || undefined,
  };
}

/** Without a terminal: prints once why no worker takes the delegation. */
export async function noteWhyQueued(
  host: CliHost,
  connection: ConnectionOptions,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await sleep(WHY_AFTER_MS, signal);
    const delegation = await new Delegator(connection).get(id, { signal });
    const why = await whyWaits(connection, delegation, signal);
    const isQueued = delegation.state === "submitted";
    if (why !== null && !signal.aborted)
      await note(host, `${id} ${isQueued ? "is queued" : "waits"}. ${why}`);
  } catch {
    // The wait itself makes the same calls and reports their errors.
  }
}
