import type { Client } from "@modelcontextprotocol/client";

export interface TaskView {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
}
export interface Outcome {
  readonly status: "completed" | "failed" | "cancelled";
  // The wire is what is under test: each test says what it expects there.
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
export function taskSession(
  client: Client,
  options: {
    dispatch: (request: unknown, signal?: AbortSignal) => Promise<Rpc>;
    protocolVersion: string;
    onInput: (request: { readonly params: Record<string, unknown> }) => Promise<{
      action: "accept" | "decline" | "cancel";
      content?: Record<string, unknown>;
    }>;
  },
): TaskSession;
