/**
 * AG-UI's own client for a test: its verifier runs, and every event is checked as it was sent, against AG-UI's schemas
 * and the broker's own.
 */
import { type AgentStateMutation, HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";
import { expect } from "vitest";
import { agUiEventSchema } from "../../../src/schema/ag-ui-event.ts";
import { as, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

// Untyped: each test states what it expects on the wire.
export type Json = ReturnType<typeof JSON.parse>;

/** An event, if it is valid by AG-UI's schemas, and has the members that the broker's schema names and no others. */
function checked(event: Json): Json {
  expect([event, EventSchema.safeParse(event).error?.issues]).toEqual([event, undefined]);
  expect(agUiEventSchema.parse(event)).toEqual(event);
  return event;
}

export interface RunOptions extends RunAgentParameters {
  /** The stream is cut after so many events. */
  readonly cutAfter?: number;
  readonly onEvent?: (event: Json) => unknown;
}

export interface Ran {
  readonly events: readonly Json[];
  readonly types: readonly string[];
  readonly last: Json;
  readonly result: Json;
  /** Why the client says that the run failed: a refusal, a cut, an event out of order, or a RUN_ERROR. */
  readonly error: string | undefined;
}

export interface Client {
  readonly agent: HttpAgent;
  readonly run: (options?: RunOptions) => Promise<Ran>;
  readonly say: (text: string, id?: string) => void;
  readonly messages: () => readonly Json[];
  /** Whether an event of this type arrived in the newest run. */
  readonly seen: (type: string) => boolean;
  readonly errand: () => Json;
}

export function agUi(url: string, token: string, threadId: string, name = "scout"): Client {
  let events: Json[] = [];
  let options: RunOptions = {};
  const agent = new HttpAgent({
    url: `${url}/ag-ui/${name}`,
    threadId,
    headers: { authorization: `Bearer ${token}` },
    async fetch(address, init) {
      const response = await fetch(address, init);
      if (!response.ok || !response.body) return response;
      const taken = take(response.body, events, options);
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        async pull(controller) {
          // A connection that breaks is a stream that ends early.
          const { done, value } = await taken.next().catch(() => ({ done: true, value: undefined }) as const);
          if (done === true) controller.close();
          else controller.enqueue(value);
        },
        cancel: async () => void (await taken.return()),
      });
      return new Response(body, { headers: response.headers });
    },
  });
  return {
    agent,
    say: (text, id = crypto.randomUUID()) => agent.addMessage({ id, role: "user", content: text }),
    messages: () => agent.messages.filter(({ role }) => role !== "activity"),
    seen: (type) => events.some((event) => event.type === type),
    errand: () => agent.state.errand,
    async run(given = {}) {
      events = [];
      options = given;
      let error: string | undefined;
      const { cutAfter: _cut, onEvent: _on, ...parameters } = given;
      const ran = await agent
        .runAgent(parameters, {
          onRunFailed: (failed) => {
            error = failed.error.message;
            // Otherwise the client prints it.
            const handled: AgentStateMutation = { stopPropagation: true };
            return handled;
          },
          onRunErrorEvent: ({ event }) => {
            error = event.message;
          },
        })
        .catch((failed: unknown) => {
          error = failed instanceof Error ? failed.message : String(failed);
          return { result: undefined };
        });
      return {
        events,
        types: events.map(({ type }) => type),
        last: events.at(-1),
        result: ran.result,
        error,
      };
    },
  };
}

/** A broker with the agent scout and the caller alice. */
export async function setup() {
  const broker = await startBroker();
  const scout = await as(broker.url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 1, max_ms: 1, jitter: 0 } });
  const alice = await as(broker.url, "caller:alice");
  const lease = async () => (await scout.lease("scout", { wait_seconds: 30 })).body.leases[0];
  const client = (thread: string) => agUi(broker.url, alice.token, thread);
  return { ...broker, scout, alice, lease, client };
}

/** Starts a run, and leases its work when the snapshots have arrived. */
export async function started(ui: Client, lease: () => Promise<Json>, options: RunOptions = {}) {
  const run = ui.run(options);
  await until(() => ui.seen("ACTIVITY_SNAPSHOT"), { what: "the snapshots" });
  const { lease_id, delegation } = await lease();
  return { run, lease_id: String(lease_id), delegation };
}

/** Passes on a stream, event by event, and keeps the events. */
async function* take(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  events: Json[],
  { cutAfter, onEvent }: RunOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    expect(text).not.toContain("\r");
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end + 2);
      text = text.slice(end + 2);
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data !== undefined) events.push(checked(JSON.parse(data)));
      yield encoder.encode(block);
      if (data !== undefined) await onEvent?.(events.at(-1));
      if (cutAfter !== undefined && events.length >= cutAfter) return;
    }
  }
}
