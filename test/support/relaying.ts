/**
 * The relay with the library, in this process, as `errand relay` runs it. Tests that kill the relay start the program
 * instead.
 */
import { onTestFinished } from "vitest";
import { cancelOrphanedTasks } from "../../src/cli/relay/orphaned-tasks.ts";
import { toOutcome, toPort } from "../../src/cli/relay/port.ts";
import { Agent } from "../../src/client/agent.ts";
import { Delegator } from "../../src/client/delegator.ts";
import type { AgentEvent } from "../../src/client/work.ts";
import { relay } from "../../src/relay/relay.ts";
import { Remote, type RemoteOptions } from "../../src/relay/remote.ts";
import { type A2aServerOptions, startA2aServer } from "./a2a-server.ts";
import { client, OPERATOR, startBroker } from "./broker.ts";
import { until } from "./until.ts";

export const SLOW = { timeoutMs: 50_000 };

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
  const done = new AbortController();
  const note = (line: string) => void notes.push(line);
  const delegator = new Delegator({ url: broker, token: OPERATOR });
  const watching = cancelOrphanedTasks({ delegator, target: agent, remote, say: note, signal: done.signal });
  const stop = async () => {
    await worker.stop();
    await running;
    done.abort();
    await watching;
  };
  onTestFinished(stop);
  return { events, notes, stop };
}

/** A broker, an A2A server, and the relay between them for the agent `remote`. */
export async function setupRelay(
  options: A2aServerOptions,
  { agent = {}, ...relaying }: Parameters<typeof startRelaying>[3] & { readonly agent?: object } = {},
) {
  const broker = await startBroker();
  const server = await startA2aServer(options);
  const api = client(broker.url);
  await api.agent("remote", agent);
  const relayed = startRelaying(broker.url, "remote", server.url, relaying);
  return { ...broker, server, api, relayed, ...watching(api) };
}

/** Delegates to `remote`, and waits for the result. */
export function watching(api: ReturnType<typeof client>) {
  const delegate = async (task: string, more = {}): Promise<string> =>
    (await api.delegate("remote", { task, ...more })).body.id;
  const ended = (id: string) =>
    until(async () => {
      const { body } = await api.get(id);
      return body.finished_at !== null && body;
    }, SLOW);
  const inState = (id: string, state: string) =>
    until(async () => {
      const { body } = await api.get(id);
      return body.state === state && body;
    }, SLOW);
  return { delegate, ended, inState };
}
