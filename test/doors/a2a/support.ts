/** The official SDK's A2A client, and raw calls, for a broker under test. */
import type { Message, StreamResponse, Task, TaskPushNotificationConfig } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { onTestFinished } from "vitest";
import { A2A_STATES, type A2aStateName } from "../../../src/schema/a2a-task.ts";
import { requireValidStreams, strictFetch } from "../../support/a2a-schema/check.ts";
import { as, type client, request, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

export const BINDINGS = ["JSON-RPC", "HTTP+JSON", "JSON-RPC of 0.3", "HTTP+JSON of 0.3"] as const;
export type Binding = (typeof BINDINGS)[number];

/** As an application creates it: from the agent's base URL, with a token. */
export async function sdkClient(
  url: string,
  agent: string,
  token: string,
  binding: Binding = "JSON-RPC",
): Promise<Client> {
  const legacy = binding.endsWith("0.3");
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    return strictFetch(input, { ...init, headers });
  };
  const versionedFetch: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    if (legacy) headers.set("A2A-Version", "0.3");
    return strictFetch(input, { ...init, headers });
  };
  const options = { fetchImpl, legacyCompat: { enabled: legacy } };
  const factory = new ClientFactory({
    transports: [
      binding.startsWith("JSON-RPC")
        ? new JsonRpcTransportFactory(options)
        : new RestTransportFactory(options),
    ],
    cardResolver: new DefaultAgentCardResolver({
      fetchImpl: versionedFetch,
      legacyCompat: { enabled: legacy },
    }),
  });
  return factory.createFromUrl(`${url}/a2a/${agent}/`);
}

/**
 * A broker with an agent `scout`, that agent's calls, and a caller `alice` with a token. `begin` sends a task without
 * waiting, `replies` the agent's answer in A2A's form.
 */
export async function startA2aBroker(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  onTestFinished(requireValidStreams);
  const agent = await as(broker.url, "agent:scout");
  await agent.agent("scout");
  const caller = await as(broker.url, "caller:alice");
  const raw = rawCalls(broker.url, caller.token);
  const begin = async (message: Record<string, unknown> = {}) => {
    const params = { message: jsonMessage("work", message), configuration: { returnImmediately: true } };
    return (await raw.rpc("SendMessage", params)).body.result.task;
  };
  const replies = (lease: string, result: object) =>
    agent.call("POST", "/v1/agents/scout/replies", { jsonrpc: "2.0", id: lease, result });
  return { ...broker, agent, caller, raw, begin, replies };
}

/** JSON-RPC and HTTP+JSON by hand. */
export function rawCalls(url: string, token: string | null, agent = "scout") {
  return {
    rpc: (method: string, params: unknown, headers: Record<string, string> = {}) =>
      request(url, "POST", `/a2a/${agent}/rpc`, {
        token,
        body: { jsonrpc: "2.0", id: 7, method, params },
        headers: { "a2a-version": "1.0", ...headers },
      }),
    envelope: (body: unknown, headers: Record<string, string> = {}) =>
      request(url, "POST", `/a2a/${agent}/rpc`, {
        token,
        body,
        headers: { "a2a-version": "1.0", ...headers },
      }),
    rest: (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      request(url, method, `/a2a/${agent}/rest${path}`, {
        token,
        ...(body !== undefined && { body }),
        headers: { "a2a-version": "1.0", ...headers },
      }),
  };
}

let messageCount = 0;

/** A message in the SDK's form. */
export function sdkMessage(text: string, more: Partial<Message> = {}): Message {
  messageCount += 1;
  return {
    messageId: `msg-${messageCount}`,
    contextId: "",
    taskId: "",
    role: 1,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
}

/** The params of sendMessage in the SDK's form. */
export const sendParams = (
  message: Message,
  configuration: {
    returnImmediately?: boolean;
    historyLength?: number;
    taskPushNotificationConfig?: TaskPushNotificationConfig;
  } = {},
) => ({
  tenant: "",
  message,
  configuration: {
    acceptedOutputModes: [],
    taskPushNotificationConfig: undefined,
    returnImmediately: false,
    ...configuration,
  },
  metadata: undefined,
});

/** A message as 1.0 JSON. */
export const jsonMessage = (text: string, more: Record<string, unknown> = {}) => {
  messageCount += 1;
  return { messageId: `msg-${messageCount}`, role: "ROLE_USER", parts: [{ text }], ...more };
};

const NAMES = new Map<number, string>(
  Object.entries(A2A_STATES).map(([name, { number }]) => [number, name satisfies A2aStateName | string]),
);
export const stateOf = ({ status }: Pick<Task, "status">): string =>
  (NAMES.get(status?.state ?? 0) ?? "").replace("TASK_STATE_", "");

export function textOf(parts: Message["parts"] | undefined): string {
  return (parts ?? []).map(({ content }) => (content?.$case === "text" ? content.value : "")).join("\n");
}

export function asTask(result: Message | Task): Task {
  if ("messageId" in result) throw new Error("a message where a task was expected");
  return result;
}

/** An update as one line, to compare streams. */
export function lineOf({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case "task":
      return `task ${stateOf(payload.value)}`;
    case "statusUpdate":
      return `${stateOf(payload.value)} ${textOf(payload.value.status?.message?.parts)}`.trim();
    case "artifactUpdate":
      return `artifact ${payload.value.artifact?.artifactId} ${textOf(payload.value.artifact?.parts)}`;
    default:
      return "?";
  }
}

export interface CollectedStream {
  readonly events: StreamResponse[];
  readonly lines: () => string[];
  readonly ended: Promise<void>;
  readonly isOpen: () => boolean;
}

/** Collects a stream's events; `ended` rejects with the stream's error. */
export function collect(stream: AsyncGenerator<StreamResponse, void, undefined>): CollectedStream {
  const events: StreamResponse[] = [];
  let open = true;
  const ended = (async () => {
    try {
      for await (const event of stream) events.push(event);
    } finally {
      open = false;
    }
  })();
  ended.catch(() => undefined);
  return { events, lines: () => events.map(lineOf), ended, isOpen: () => open };
}

/** Reads until the first event. A poll should start only then, so that the stream begins with SUBMITTED. */
export async function collectFromStart(
  stream: AsyncGenerator<StreamResponse, void, undefined>,
): Promise<CollectedStream> {
  const read = collect(stream);
  await until(() => read.events.length > 0, { what: "the task" });
  return read;
}

type Agent = ReturnType<typeof client>;

/** Leases the agent's next work. */
export async function leaseOf(
  agent: Agent,
  name = "scout",
): Promise<{
  lease: string;
  id: string;
  body: Agent extends never ? never : Awaited<ReturnType<Agent["lease"]>>["body"];
}> {
  const { body } = await agent.lease(name);
  const [first] = body.leases;
  return { lease: String(first.lease_id), id: String(first.delegation.id), body: first };
}
