/**
 * Both sides of a delegation, each through one API: the same few verbs, so that one story can run through all
 * APIs. Features that only one API has are not here.
 */
import type { Message } from "@a2a-js/sdk";
import { Delegator } from "../../src/client/delegator.ts";
import {
  asTask,
  type Binding,
  sdkClient,
  sdkMessage,
  sendParams,
  stateOf,
  textOf,
} from "../doors/a2a/support.ts";
import { agUi, type RunOptions } from "../doors/agui/support.ts";
import { client, request } from "./broker.ts";
import { callModern, type Era, mcpClient, requestModern, TASKS_CAPABILITY, toolOutput } from "./mcp.ts";
import { until } from "./until.ts";

// Untyped: each API takes what it needs from the wire.
type Json = ReturnType<typeof JSON.parse>;

export interface OpenQuestion {
  readonly interrupt_id: string;
  readonly requests: readonly { readonly request_id: string }[];
}
export interface GivenAnswer {
  readonly decision?: "approve" | "deny";
  readonly text?: string;
}

export interface DelegatorApi {
  readonly delegate: (task: string, metadata?: Record<string, unknown>) => Promise<string>;
  /** Resolves once the delegation asks. */
  readonly asked: (id: string) => Promise<OpenQuestion>;
  /** Answers each of the question's requests, in order. */
  readonly answer: (id: string, asked: OpenQuestion, said: readonly GivenAnswer[]) => Promise<unknown>;
  readonly followUp: (id: string, text: string) => Promise<unknown>;
  readonly cancel: (id: string, reason?: string) => Promise<unknown>;
  /** The final state, and the text of the reply. */
  readonly ended: (id: string) => Promise<{ readonly state: string; readonly text: string }>;
}

export interface AgentApi {
  readonly lease: () => Promise<string>;
  readonly progress: (lease: string, message: string) => Promise<unknown>;
  readonly ask: (lease: string, kind: "input" | "auth", text: string) => Promise<unknown>;
  /** Asks several things in one question, if the API has a form for that. */
  readonly askAll?: (lease: string, texts: readonly string[]) => Promise<unknown>;
  /** The texts of the follow-ups received so far. */
  readonly followUps: (lease: string) => Promise<readonly string[]>;
  readonly complete: (lease: string, text: string, artifact?: Artifact) => Promise<unknown>;
  readonly fail: (lease: string, message: string, retryable?: boolean) => Promise<unknown>;
  readonly reject: (lease: string, message: string) => Promise<unknown>;
  readonly release: (lease: string, reason: string) => Promise<unknown>;
  /** The reason why the lease is lost. */
  readonly lost: (lease: string) => Promise<string>;
}
export interface Artifact {
  readonly name: string;
  readonly text: string;
}

const PATIENT = { timeoutMs: 30_000 };
const PATIENT_SECONDS = 30;

function ok<T extends { readonly status: number; readonly body: Json }>(answer: T): Json {
  if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const questionOf = (interrupt: Json): OpenQuestion => ({
  interrupt_id: String(interrupt.id ?? interrupt.interrupt_id),
  requests: interrupt.requests,
});

function rest(url: string, token: string): DelegatorApi {
  const delegator = new Delegator({ url, token });
  return {
    delegate: async (task, metadata) =>
      (await delegator.delegate({ target: "scout", task, ...(metadata && { metadata }) })).id,
    async asked(id) {
      const { interrupt } = await delegator.wait(id, { timeoutSeconds: PATIENT_SECONDS });
      return questionOf(interrupt);
    },
    answer(id, { interrupt_id, requests }, said) {
      const [only] = said;
      const answers = Object.fromEntries(
        requests.map(({ request_id }, at) => [request_id, said[at] ?? {}] as const),
      );
      return delegator.answer(id, interrupt_id, said.length === 1 && only ? only : { answers });
    },
    followUp: (id, text) => delegator.message(id, text),
    cancel: (id, reason) => delegator.cancel(id, reason),
    async ended(id) {
      const { state, reply } = await delegator.wait(id, { timeoutSeconds: PATIENT_SECONDS });
      return { state, text: (reply?.parts ?? []).map(({ text }) => text ?? "").join("\n") };
    },
  };
}

const STATES: Readonly<Record<string, string>> = {
  COMPLETED: "completed",
  FAILED: "failed",
  REJECTED: "rejected",
  CANCELED: "canceled",
};

async function a2a(url: string, token: string, binding: Binding): Promise<DelegatorApi> {
  const sdk = await sdkClient(url, "scout", token, binding);
  const send = async (message: Message, metadata?: Record<string, unknown>) => {
    const params = sendParams(message, { returnImmediately: true });
    return asTask(await sdk.sendMessage({ ...params, metadata }));
  };
  const once = (id: string, isSo: (state: string) => boolean) =>
    until(async () => {
      const task = await sdk.getTask({ tenant: "", id });
      return isSo(stateOf(task)) ? task : null;
    }, PATIENT);
  return {
    delegate: async (task, metadata) => (await send(sdkMessage(task), metadata)).id,
    async asked(id) {
      const { metadata } = await once(id, (state) => state.endsWith("_REQUIRED"));
      const { id: interrupt_id, requests } = metadata?.errand.interrupt ?? {};
      return questionOf({
        interrupt_id,
        requests: requests.map(({ requestId, ...request }: Json) => ({ request_id: requestId, ...request })),
      });
    },
    async answer(id, { interrupt_id, requests }, said) {
      const isOne = said.length === 1;
      const parts = said.flatMap(({ text, decision }, at) =>
        sdkMessage(text ?? "").parts.map((part) => ({
          ...part,
          // A message needs a part.
          ...(text === undefined && { content: { $case: "data" as const, value: { decision } } }),
          metadata: isOne
            ? undefined
            : { requestId: requests[at]?.request_id, ...(decision && { decision }) },
        })),
      );
      const [only] = said;
      const decision = isOne && only?.decision ? { decision: only.decision } : undefined;
      return send(
        sdkMessage("", { taskId: id, parts, metadata: { interruptId: interrupt_id, ...decision } }),
      );
    },
    followUp: (id, text) => send(sdkMessage(text, { taskId: id })),
    async cancel(id, reason) {
      if (reason === undefined || binding.startsWith("JSON-RPC")) {
        return sdk.cancelTask({ tenant: "", id, metadata: reason ? { reason } : undefined });
      }
      // The SDK sends no body, and 0.3 has none; 1.0 has one.
      return ok(
        await request(url, "POST", `/a2a/scout/rest/tasks/${id}:cancel`, {
          token,
          body: { metadata: { reason } },
          headers: { "a2a-version": "1.0" },
        }),
      );
    },
    async ended(id) {
      const task = await once(id, (state) => STATES[state] !== undefined);
      return { state: STATES[stateOf(task)] ?? "", text: textOf(task.status?.message?.parts) };
    },
  };
}

const toolsOf =
  (mcp: Awaited<ReturnType<typeof mcpClient>>) =>
  async (name: string, args: Record<string, unknown>): Promise<Json> => {
    const { data, isError, text } = toolOutput(await mcp.callTool({ name, arguments: args }));
    if (isError) throw new Error(text, { cause: data.error });
    return data;
  };

async function tools(url: string, token: string, era: Era): Promise<DelegatorApi> {
  const call = toolsOf(await mcpClient(url, token, era));
  return {
    delegate: async (task, metadata) =>
      (await call("delegate_task_async", { agent: "scout", task, ...(metadata && { metadata }) }))
        .delegation_id,
    async asked(delegation_id) {
      const { question } = await call("check_task_status", { delegation_id, wait_seconds: PATIENT_SECONDS });
      return questionOf(question);
    },
    answer(delegation_id, { interrupt_id, requests }, said) {
      const [only] = said;
      if (said.length === 1 && only?.decision) {
        return call("approve_or_deny", { delegation_id, interrupt_id, ...only });
      }
      const answers = Object.fromEntries(requests.map(({ request_id }, at) => [request_id, said[at]]));
      return call("answer_task", {
        delegation_id,
        interrupt_id,
        ...(said.length === 1 ? only : { answers }),
      });
    },
    followUp: (delegation_id, text) => call("send_follow_up", { delegation_id, text }),
    cancel: (delegation_id, reason) => call("cancel_task", { delegation_id, ...(reason && { reason }) }),
    async ended(delegation_id) {
      const { state, reply } = await call("check_task_status", {
        delegation_id,
        wait_seconds: PATIENT_SECONDS,
      });
      return { state, text: reply?.text ?? "" };
    },
  };
}

const TASK_STATES: Readonly<Record<string, string>> = { cancelled: "canceled", completed: "completed" };

/** The Tasks extension for what it has, and tools for the rest. */
async function tasks(url: string, token: string): Promise<DelegatorApi> {
  const rest = await tools(url, token, "modern");
  const capabilities = { ...TASKS_CAPABILITY, elicitation: { form: {} } };
  const ask = async (method: string, params: Record<string, unknown>) =>
    (await requestModern(url, token, method, params, { capabilities })).body.result;
  const once = (taskId: string, isSo: (task: Json) => boolean) =>
    until(async () => {
      const task = await ask("tasks/get", { taskId });
      return isSo(task) && task;
    }, PATIENT);
  return {
    ...rest,
    async delegate(task, metadata) {
      const args = { agent: "scout", task, ...(metadata && { metadata }) };
      const { body } = await callModern(url, token, "delegate_task", args, { capabilities });
      return body.result.taskId;
    },
    async asked(id) {
      const { inputRequests } = await once(id, ({ status }) => status === "input_required");
      const keys = Object.keys(inputRequests).map((key) => key.split(":"));
      return {
        interrupt_id: keys[0]?.[0] ?? "",
        requests: keys.map(([, request_id = ""]) => ({ request_id })),
      };
    },
    async answer(taskId, { interrupt_id, requests }, said) {
      // One by one: the question is answered when all answers have arrived.
      for (const [at, { request_id }] of requests.entries()) {
        const { text, decision } = said[at] ?? {};
        const content = { ...(text && { answer: text }), ...(decision && { decision }) };
        const inputResponses = { [`${interrupt_id}:${request_id}`]: { action: "accept", content } };
        await ask("tasks/update", { taskId, inputResponses });
      }
    },
    cancel: (taskId, reason) =>
      reason === undefined ? ask("tasks/cancel", { taskId }) : rest.cancel(taskId, reason),
    async ended(taskId) {
      const { status, result } = await once(taskId, (task) => TASK_STATES[task.status] !== undefined);
      const shown = result?.structuredContent;
      return { state: shown?.state ?? TASK_STATES[status], text: shown?.reply?.text ?? "" };
    },
  };
}

/** Each verb is a run of its own, which is left as soon as it has begun, or read to its end. */
function agUiRuns(url: string, token: string): DelegatorApi {
  const threads = new Map<string, string>();
  const run = async (
    thread: string,
    errand: object,
    { say, ...more }: RunOptions & { say?: string } = {},
  ) => {
    const ui = agUi(url, token, thread);
    if (say !== undefined) ui.say(say);
    const ran = await ui.run({ ...more, forwardedProps: { errand } });
    const [first] = ran.events;
    // A stream that was cut has an error, too; a refused run has no event.
    if (!first) throw new Error(ran.error);
    return { ...ran, id: String(first.metadata.errand.delegation_id) };
  };
  const BEGUN = { cutAfter: 1 };
  const of = (id: string, errand: object, more: RunOptions & { say?: string } = {}) =>
    run(threads.get(id) ?? "", { delegation_id: id, ...errand }, more);
  return {
    async delegate(task, metadata) {
      const thread = crypto.randomUUID();
      const { id } = await run(thread, { ...(metadata && { metadata }) }, { ...BEGUN, say: task });
      threads.set(id, thread);
      return id;
    },
    async asked(id) {
      const { last } = await of(id, { attach: true });
      const [interrupt] = last.outcome.interrupts;
      return { interrupt_id: interrupt.id, requests: interrupt.metadata.errand.requests };
    },
    answer(id, { interrupt_id, requests }, said) {
      const answers = Object.fromEntries(requests.map(({ request_id }, at) => [request_id, said[at]]));
      const payload = said.length === 1 ? said[0] : { answers };
      const resume = [{ interruptId: interrupt_id, status: "resolved" as const, payload }];
      return of(id, { attach: true }, { ...BEGUN, resume });
    },
    followUp: (id, text) => of(id, { follow_up: true }, { ...BEGUN, say: text }),
    cancel: (id, reason) => of(id, { cancel: reason === undefined ? true : { reason } }),
    async ended(id) {
      const { last } = await of(id, { attach: true });
      if (last.type === "RUN_ERROR") return { state: last.metadata.errand.state, text: "" };
      if (last.outcome.type === "cancelled") return { state: "canceled", text: "" };
      const parts: Json[] = last.result.reply?.parts ?? [];
      return { state: "completed", text: parts.map(({ text }) => text ?? "").join("\n") };
    },
  };
}

export const DELEGATOR_APIS: Readonly<Record<string, (url: string, token: string) => Promise<DelegatorApi>>> =
  {
    "REST by the library": async (url, token) => rest(url, token),
    "A2A over JSON-RPC": (url, token) => a2a(url, token, "JSON-RPC"),
    "A2A over HTTP+JSON": (url, token) => a2a(url, token, "HTTP+JSON"),
    "A2A 0.3 over JSON-RPC": (url, token) => a2a(url, token, "JSON-RPC of 0.3"),
    "A2A 0.3 over HTTP+JSON": (url, token) => a2a(url, token, "HTTP+JSON of 0.3"),
    "MCP tools of 2026-07-28": (url, token) => tools(url, token, "modern"),
    "MCP tools of 2025-11-25": (url, token) => tools(url, token, "legacy"),
    "MCP tasks": tasks,
    "AG-UI": async (url, token) => agUiRuns(url, token),
  };

function protocol(url: string, token: string): AgentApi {
  const api = client(url, token);
  return {
    lease: async () => ok(await api.lease("scout", { wait_seconds: PATIENT_SECONDS })).leases[0].lease_id,
    progress: async (lease, message) => ok(await api.heartbeat(lease, { progress: { message } })),
    ask: async (lease, kind, text) => ok(await api.interrupt(lease, { kind, text })),
    askAll: async (lease, texts) =>
      ok(await api.interrupt(lease, { requests: texts.map((text) => ({ text })) })),
    followUps: async (lease) =>
      ok(await api.heartbeat(lease, { wait_seconds: 20 })).messages.map(({ parts }: Json) => parts[0].text),
    complete: async (lease, text, artifact) =>
      ok(
        await api.reply(lease, {
          text,
          ...(artifact && {
            artifacts: [{ artifactId: artifact.name, name: artifact.name, parts: [{ text: artifact.text }] }],
          }),
        }),
      ),
    fail: async (lease, message, retryable = false) =>
      ok(
        await api.call("POST", `/v1/leases/${lease}/reply`, {
          state: "failed",
          error: { code: "agent_error", message, retryable },
        }),
      ),
    reject: async (lease, message) =>
      ok(
        await api.call("POST", `/v1/leases/${lease}/reply`, {
          state: "rejected",
          error: { code: "rejected", message },
        }),
      ),
    release: async (lease, reason) => ok(await api.release(lease, { reason })),
    lost: async (lease) => (await api.heartbeat(lease)).body.details.reason,
  };
}

async function workingTools(url: string, token: string, era: Era): Promise<AgentApi> {
  const call = toolsOf(await mcpClient(url, token, era));
  return {
    lease: async () =>
      (await call("poll_inbox", { wait_seconds: PATIENT_SECONDS, lease_seconds: 60 })).tasks[0].lease_id,
    progress: (lease_id, message) => call("report_progress", { lease_id, message }),
    ask: (lease_id, kind, question) => call("request_input", { lease_id, kind, question }),
    followUps: async (lease_id) =>
      (await call("report_progress", { lease_id, wait_seconds: 20 })).messages.map(({ text }: Json) => text),
    complete: (lease_id, text, artifact) =>
      call("complete_task", { lease_id, text, ...(artifact && { artifacts: [artifact] }) }),
    fail: (lease_id, message, retryable = false) => call("fail_task", { lease_id, message, retryable }),
    reject: (lease_id, message) => call("fail_task", { lease_id, message, rejected: true }),
    release: (lease_id, reason) => call("release_task", { lease_id, reason }),
    lost: (lease_id) =>
      call("report_progress", { lease_id }).then(
        () => "not lost",
        ({ cause }) => cause.details.reason,
      ),
  };
}

let replied = 0;

/** Sends its output as an A2A Task to `/replies`; leases and heartbeats are those of the agent protocol. */
function replies(url: string, token: string): AgentApi {
  const own = protocol(url, token);
  const post = async (lease: string, state: string, text: string, artifact?: Artifact) => {
    replied += 1;
    const message = { messageId: `said-${replied}`, role: "ROLE_AGENT", parts: [{ text }] };
    const task = {
      id: "remote-1",
      contextId: "remote-context",
      status: { state: `TASK_STATE_${state}`, message },
      ...(artifact && {
        artifacts: [{ artifactId: artifact.name, name: artifact.name, parts: [{ text: artifact.text }] }],
      }),
    };
    const body = { jsonrpc: "2.0", id: lease, result: { task } };
    return ok(await request(url, "POST", "/v1/agents/scout/replies", { token, body }));
  };
  return {
    ...own,
    progress: (lease, message) => post(lease, "WORKING", message),
    ask: (lease, kind, text) => post(lease, kind === "input" ? "INPUT_REQUIRED" : "AUTH_REQUIRED", text),
    complete: (lease, text, artifact) => post(lease, "COMPLETED", text, artifact),
    fail: (lease, message, retryable = false) =>
      // A2A has no retryable failure.
      retryable ? own.fail(lease, message, true) : post(lease, "FAILED", message),
    reject: (lease, message) => post(lease, "REJECTED", message),
  };
}

export const AGENT_APIS: Readonly<Record<string, (url: string, token: string) => Promise<AgentApi>>> = {
  "the agent protocol": async (url, token) => protocol(url, token),
  "A2A replies": async (url, token) => replies(url, token),
  "MCP tools": (url, token) => workingTools(url, token, "modern"),
  "MCP tools of 2025-11-25": (url, token) => workingTools(url, token, "legacy"),
};
