/** The relay over the library, in this process: what `errand relay` does. Limit: to be killed, it is run as a program. */
import { onTestFinished } from "vitest";
import { toOutcome, toPort } from "../../src/cli/relay-port.ts";
import { Agent } from "../../src/client/agent.ts";
import type { AgentEvent } from "../../src/client/work.ts";
import { relay } from "../../src/relay/relay.ts";
import { Remote, type RemoteOptions } from "../../src/relay/remote.ts";
import { OPERATOR } from "./broker.ts";

export interface Relaying {
  readonly events: AgentEvent[];
  readonly notes: string[];
  readonly stop: () => Promise<void>;
}

export function startRelaying(
  broker: string,
  agent: string,
  to: string,
  options: Omit<RemoteOptions, "url"> & {
    readonly leaseSeconds?: number;
    readonly concurrency?: number;
  } = {},
): Relaying {
  const { leaseSeconds, concurrency = 4, ...more } = options;
  const remote = new Remote({ url: to, ...more });
  const events: AgentEvent[] = [];
  const notes: string[] = [];
  const worker = new Agent(
    {
      url: broker,
      token: OPERATOR,
      agent,
      concurrency,
      leaseSeconds,
      onEvent: (event) => events.push(event),
    },
    async (work) =>
      toOutcome(
        work,
        await relay(
          toPort(work, (line) => notes.push(line)),
          remote,
        ),
      ),
  );
  const running = worker.run();
  running.catch(() => undefined);
  const stop = async () => {
    await worker.stop();
    await running;
  };
  onTestFinished(stop);
  return { events, notes, stop };
}
