/**
 * The Tasks extension's client, on a connected SDK client. Its own typings do not compile here, so it is loaded without
 * them.
 */
import type { Client } from "@modelcontextprotocol/client";

export interface TaskView {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
}
export interface Outcome {
  readonly status: "completed" | "failed" | "cancelled";
  // Untyped: each test states what it expects on the wire.
  readonly result?: ReturnType<typeof JSON.parse>;
  readonly error?: { readonly code?: number; readonly data?: ReturnType<typeof JSON.parse> };
}
export interface Execution {
  readonly kind: "immediate" | "task";
  readonly handle?: { readonly taskId: string };
  readonly settle: (options?: {
    onEvent?: (event: { readonly task?: TaskView }) => void;
  }) => Promise<{ outcome: Outcome }>;
  readonly cancel: () => Promise<void>;
}
export interface TaskSession {
  readonly callTool: (name: string, args: Record<string, unknown>) => Promise<Execution>;
  readonly close: () => Promise<void>;
}
export interface Rpc {
  readonly result?: ReturnType<typeof JSON.parse>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

const LIBRARY: string = "@modelcontextprotocol/ext-tasks/client";
const { createTaskSessionFromClient } = await import(LIBRARY);

export interface SessionOptions {
  readonly dispatch: (request: unknown, signal?: AbortSignal) => Promise<Rpc>;
  readonly protocolVersion: string;
  readonly onInput: (request: { readonly params: Record<string, unknown> }) => Promise<{
    readonly action: "accept" | "decline" | "cancel";
    readonly content?: Record<string, unknown>;
  }>;
}

export function taskSession(
  client: Client,
  { dispatch, protocolVersion, onInput }: SessionOptions,
): TaskSession {
  return createTaskSessionFromClient(client, {
    endpointId: "errand-test",
    rawDispatch: async (request: unknown, options?: { readonly signal?: AbortSignal }) => {
      const { error, result } = await dispatch(request, options?.signal);
      return error ? { kind: "error", error } : { kind: "result", result };
    },
    v2RequestFraming: {
      protocolVersion,
      clientInfo: { name: "tasks-test", version: "1" },
      clientCapabilities: { elicitation: { form: {} } },
    },
    onInputRequest: onInput,
  });
}
