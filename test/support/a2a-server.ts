/**
 * A real A2A server, with the SDK's own request handler over node:http: 1.0 or 0.3, streaming or not. It can be
 * killed and restarted with its stored tasks. Limit: JSON-RPC; the test writes the agent.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import {
  AgentEvent,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext,
} from "@a2a-js/sdk/server";
import { onTestFinished } from "vitest";

export type Version = "1.0" | "0.3";

export interface A2aServerOptions {
  readonly version?: Version;
  readonly streaming?: boolean;
  /** The token that every call except the card's needs. */
  readonly bearer?: string;
  /** What the agent does with a message. */
  readonly turn: (turn: Turn) => Promise<void> | void;
  readonly onCancel?: (taskId: string, say: TaskUpdates) => void;
}

/** One part of text, or the given parts. */
type MessageContent = string | { readonly messageId?: string; readonly parts: readonly object[] };

/** Sends the agent's updates of its task. */
export class TaskUpdates {
  readonly taskId: string;
  readonly contextId: string;
  readonly #bus: ExecutionEventBus;

  constructor(taskId: string, contextId: string, bus: ExecutionEventBus) {
    this.taskId = taskId;
    this.contextId = contextId;
    this.#bus = bus;
  }

  #message(said: MessageContent): object {
    const body = typeof said === "string" ? { parts: [{ text: said }] } : said;
    const messageId = crypto.randomUUID();
    return { messageId, role: "ROLE_AGENT", taskId: this.taskId, contextId: this.contextId, ...body };
  }

  /** Must come first in every turn. */
  task(history: readonly object[], artifacts: readonly object[] = []): void {
    const status = { state: "TASK_STATE_WORKING", timestamp: new Date().toISOString() };
    const { taskId: id, contextId } = this;
    this.#bus.publish(AgentEvent.task(Task.fromJSON({ id, contextId, status, history, artifacts })));
  }

  status(state: string, said?: MessageContent): void {
    const message = said === undefined ? undefined : this.#message(said);
    const status = { state: `TASK_STATE_${state}`, message, timestamp: new Date().toISOString() };
    const { taskId, contextId } = this;
    this.#bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
  }

  artifact(
    artifactId: string,
    text: string,
    { metadata, ...more }: { append?: boolean; lastChunk?: boolean; metadata?: object } = {},
  ): void {
    const artifact = { artifactId, name: artifactId, parts: [{ text }], ...(metadata && { metadata }) };
    const { taskId, contextId } = this;
    this.#bus.publish(
      AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact, ...more })),
    );
  }

  message(text: string): void {
    this.#bus.publish(AgentEvent.message(Message.fromJSON(this.#message(text))));
  }
}

export class Turn extends TaskUpdates {
  readonly text: string;
  readonly message0: object;
  /** 1 for the message that created the task. */
  readonly number: number;
  readonly request: RequestContext;

  constructor(request: RequestContext, bus: ExecutionEventBus) {
    super(request.taskId, request.contextId, bus);
    this.request = request;
    const { userMessage, task } = request;
    this.message0 = Object(Message.toJSON(userMessage));
    this.text = userMessage.parts
      .map(({ content }) => (content?.$case === "text" ? content.value : ""))
      .join("\n");
    const before = task?.history.filter(
      ({ role, messageId }) => role === 1 && messageId !== userMessage.messageId,
    );
    this.number = 1 + (before?.length ?? 0);
  }

  /** Reports the task as working, with the messages so far. */
  begin(): void {
    const { task } = this.request;
    const known = task ? Object(Task.toJSON(task)) : {};
    const history: { messageId?: string }[] = known.history ?? [];
    const { messageId } = this.request.userMessage;
    const whole = history.some((one) => one.messageId === messageId) ? history : [...history, this.message0];
    this.task(whole, known.artifacts ?? []);
  }
}

export interface A2aServer {
  readonly url: string;
  /** Every message that started a turn, and its task. */
  readonly turns: {
    readonly taskId: string;
    readonly text: string;
    readonly message: ReturnType<typeof JSON.parse>;
  }[];
  readonly canceled: string[];
  /** The JSON-RPC methods that were called, in order. */
  readonly calls: string[];
  readonly headers: IncomingMessage["headers"][];
  /** How many event streams it has opened so far. */
  readonly streams: () => number;
  /** The ids of all tasks, each once. */
  readonly tasks: () => string[];
  readonly task: (id: string) => Promise<Task | undefined>;
  /** Changes a stored task, as if it had continued behind a dead connection. */
  readonly store: (id: string, members: object) => Promise<void>;
  /** Cuts every connection and stops listening. */
  readonly kill: () => Promise<void>;
  /** Listens again on the same port; with `forget`, all tasks are gone. */
  readonly restart: (forget?: boolean) => Promise<void>;
  /** Cuts every open connection. */
  readonly cut: () => void;
  /**
   * Chooses a fault for a call before it is handled: a status to answer with, `cut` (it is not executed) or `deaf`
   * (it is executed, without an answer).
   */
  fault: (method: string, body: ReturnType<typeof JSON.parse>) => number | "cut" | "deaf" | undefined;
}

const SKILL = { id: "work", name: "work", description: "works", tags: ["work"] };

function cardOf(url: string, version: Version, streaming: boolean): object {
  const common = {
    name: "remote",
    description: "a test's agent",
    version: "1",
    capabilities: { streaming },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [SKILL],
  };
  if (version === "0.3") {
    return { ...common, protocolVersion: "0.3.0", url: `${url}/rpc`, preferredTransport: "JSONRPC" };
  }
  const supportedInterfaces = [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  return { ...common, supportedInterfaces };
}

export async function startA2aServer(options: A2aServerOptions): Promise<A2aServer> {
  const { version = "1.0", streaming = true } = options;
  let store = new InMemoryTaskStore();
  let server: Server | undefined;
  let port = 0;
  const turns: A2aServer["turns"] = [];
  const canceled: string[] = [];
  const calls: string[] = [];
  const headers: A2aServer["headers"] = [];
  let streams = 0;
  const context = () => new ServerCallContext({ requestedVersion: version });

  const handler = () => {
    const url = `http://127.0.0.1:${port}`;
    const card = AgentCard.fromJSON({
      ...cardOf(url, "1.0", streaming),
      supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: version }],
    });
    const contexts = new Map<string, string>();
    const rules = new DefaultRequestHandler(card, store, {
      async execute(request, bus) {
        const turn = new Turn(request, bus);
        contexts.set(turn.taskId, turn.contextId);
        turns.push({ taskId: turn.taskId, text: turn.text, message: turn.message0 });
        await options.turn(turn);
        bus.finished();
      },
      async cancelTask(taskId, bus) {
        canceled.push(taskId);
        const say = new TaskUpdates(taskId, contexts.get(taskId) ?? "", bus);
        if (options.onCancel) options.onCancel(taskId, say);
        else say.status("CANCELED");
      },
    });
    return version === "1.0" ? new JsonRpcTransportHandler(rules) : new LegacyJsonRpcTransportHandler(rules);
  };

  let current = handler();
  const proxy: A2aServer = {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    turns,
    canceled,
    calls,
    headers,
    streams: () => streams,
    tasks: () => [...new Set(turns.map(({ taskId }) => taskId))],
    task: (id) => store.load(id, context()),
    store: async (id, members) => {
      const task = await store.load(id, context());
      await store.save(Task.fromJSON({ ...(task && Object(Task.toJSON(task))), ...members }), context());
    },
    kill: async () => {
      const dying = server;
      server = undefined;
      if (!dying) return;
      const closed = new Promise((resolve) => dying.close(resolve));
      dying.closeAllConnections();
      await closed;
    },
    restart: async (forget = false) => {
      await proxy.kill();
      if (forget) store = new InMemoryTaskStore();
      await start();
    },
    cut: () => server?.closeAllConnections(),
    fault: () => undefined,
  };

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    outgoing.on("error", () => undefined);
    if (incoming.url?.startsWith("/.well-known/agent-card.json")) {
      outgoing.setHeader("content-type", "application/json");
      outgoing.end(JSON.stringify(cardOf(proxy.url, version, streaming)));
      return;
    }
    let text = "";
    for await (const chunk of incoming) text += chunk;
    if (incoming.url !== "/rpc") return void outgoing.writeHead(404).end();
    if (options.bearer !== undefined && incoming.headers.authorization !== `Bearer ${options.bearer}`) {
      return void outgoing.writeHead(401).end();
    }
    const body = JSON.parse(text);
    calls.push(body.method);
    headers.push(incoming.headers);
    const fault = proxy.fault(body.method, body);
    if (typeof fault === "number") return void outgoing.writeHead(fault).end("{}");
    if (fault === "cut") return void outgoing.destroy();
    const result = await current.handle(body, context());
    if (fault === "deaf") outgoing.destroy();
    if (!(Symbol.asyncIterator in result)) {
      outgoing.setHeader("content-type", "application/json");
      outgoing.end(JSON.stringify(result));
      return;
    }
    if (!outgoing.destroyed) outgoing.writeHead(200, { "content-type": "text/event-stream" });
    streams += 1;
    // Read to its end even without a listener: the SDK stores the updates that pass here.
    for await (const event of result) {
      if (!outgoing.destroyed) outgoing.write(`data: ${JSON.stringify(event)}\n\n`);
    }
    outgoing.end();
  }

  async function start(): Promise<void> {
    const next = createServer((incoming, outgoing) => {
      answer(incoming, outgoing).catch(() => outgoing.destroy());
    });
    await new Promise<void>((resolve) => next.listen(port, "127.0.0.1", resolve));
    const address: AddressInfo | string | null = next.address();
    if (typeof address === "object" && address !== null) port = address.port;
    server = next;
    current = handler();
  }

  await start();
  onTestFinished(() => proxy.kill());
  return proxy;
}
