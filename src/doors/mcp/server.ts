/**
 * A server of the MCP SDK with the tools of one principal: for one request of 2026-07-28, for one session of
 * 2025-11-25. Limit: the SDK's low-level server, since its comfortable one turns every error into a tool's and no
 * tool with an output schema into a task.
 */
import {
  type CallToolResult,
  type InputRequiredResult,
  isSpecType,
  type JsonSchemaType,
  type JsonSchemaValidator,
  type Tool as ListedTool,
  ProtocolError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Principal } from "../../engine/access/access.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { toErrandError } from "../http/problem.ts";
import { API_INFO } from "../openapi/document.ts";
import { Context, declaresTasks, type Era, TASKS, tasksRequired } from "./context.ts";
import { toProtocolError, toToolError } from "./errors.ts";
import { cancelTask, getTask, updateTask } from "./tasks.ts";
import type { ClientPings } from "./tools/lease-delivery.ts";
import { type TaskHandle, type Tool, toResult } from "./tools/tool.ts";
import { TOOLS } from "./tools/tools.ts";

const INSTRUCTIONS =
  "Errand hands work to other agents and brings their answers back. To delegate: discover_agents, then delegate_task (waits) or delegate_task_async and later wait_for_results. Work that is accepted is never lost: if a call ends early, call check_task_status with the delegation_id instead of delegating again. To work as an agent: poll_inbox, report_progress while you work, then complete_task, fail_task, request_input or release_task. Errors say in error.recovery what to do next.";
const LIST_TTL_MS = 300_000;

/** Answers of clients are checked by the engine; compiling schemas for each request would cost more than all of it. */
const anything = {
  getValidator<T>(_schema: JsonSchemaType): JsonSchemaValidator<T> {
    return () => ({ valid: false, data: undefined, errorMessage: "not offered" });
  },
};

function listed({ name, title, description, inputSchema, outputSchema, annotations }: Tool): ListedTool {
  const one: unknown = { name, title, description, inputSchema, outputSchema, annotations };
  if (!isSpecType.Tool(one)) throw new TypeError(`${name} is not a tool that MCP could list`);
  return one;
}

const LISTED = TOOLS.map((tool) => ({ tool, listed: listed(tool) }));
const byName = new Map(TOOLS.map((tool) => [tool.name, tool]));

export const toolsFor = ({ kind }: Principal): ListedTool[] =>
  LISTED.filter(({ tool }) => tool.for.includes(kind)).map((one) => one.listed);

/** Tools and handlers beside the broker's, for tests of the protocol itself; no setting leads here. */
export interface Extension {
  readonly tools: readonly ExtraTool[];
  /** Before the server is connected. */
  readonly extend: (server: Server, era: Era) => void;
}
export interface ExtraTool {
  readonly listed: ListedTool;
  readonly run: (
    args: Readonly<Record<string, unknown>>,
    context: Context,
    server: ServerContext,
  ) => Promise<CallToolResult | InputRequiredResult | TaskHandle>;
}

export type InTurn = <T>(call: AuthenticatedRequest, work: () => Promise<T>) => Promise<T>;

/**
 * `callOf` finds the HTTP request that a message came with. `inTurn` runs a tool call in its principal's turn, when the
 * HTTP request has none for it. `around` wraps every tool call.
 */
export interface ServerOptions {
  readonly era: Era;
  readonly callOf: (context: ServerContext) => AuthenticatedRequest;
  readonly inTurn?: InTurn;
  readonly around?: <T>(work: () => Promise<T>) => Promise<T>;
  readonly extension?: Extension | undefined;
  /** Of a session. */
  readonly pings?: ClientPings;
}

export function createServer(options: ServerOptions): Server {
  const { era, callOf, around = (work) => work(), extension, pings } = options;
  const { inTurn = (_call, work) => work() } = options;
  const server = new Server(
    { name: "errand", title: API_INFO.title, version: API_INFO.version },
    {
      capabilities: { tools: {}, ...(era === "modern" && { extensions: { [TASKS]: {} } }) },
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: anything,
      inputRequired: { legacyShim: false },
      cacheHints: {
        "tools/list": { ttlMs: LIST_TTL_MS, cacheScope: "private" },
        "server/discover": { ttlMs: LIST_TTL_MS, cacheScope: "private" },
      },
    },
  );
  server.setRequestHandler("tools/list", (_request, context) => ({
    tools: [...toolsFor(callOf(context).principal), ...(extension?.tools.map((extra) => extra.listed) ?? [])],
  }));
  server.setRequestHandler("tools/call", ({ params }, context) => {
    const call = callOf(context);
    const tool = byName.get(params.name);
    const extra = extension?.tools.find(({ listed }) => listed.name === params.name);
    if (extra)
      return around(() => extra.run(params.arguments ?? {}, new Context(call, era, context), context));
    if (!tool) {
      throw toProtocolError(
        new ErrandError("invalid_request", `There is no tool '${params.name}'.`, {
          details: { issues: [{ path: "name", reason: "not in tools/list" }] },
        }),
        call.requestId,
      );
    }
    const args = params.arguments ?? {};
    return around(() => callTool(tool, args, new Context(call, era, context, pings), inTurn));
  });
  if (era === "modern") addTasks(server, callOf);
  extension?.extend(server, era);
  return server;
}

async function callTool(tool: Tool, args: unknown, context: Context, inTurn: InTurn) {
  const { call, broker } = context;
  try {
    const answer = await inTurn(call, async () => tool.run(args, context));
    return "result" in answer ? answer.result : toResult(answer);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const refused = toErrandError(error, broker.log, call.requestId, tool.reads ? "GET" : "POST");
    const told = toToolError(refused, call.requestId);
    const retry = told.retryable ? "It may work if tried again." : "Trying the same again does not help.";
    const text = `${told.category} ${told.code}: ${told.message}\n${retry} What to do: ${told.recovery}`;
    const issues = told.details === undefined ? "" : `\ndetails: ${JSON.stringify(told.details)}`;
    return toResult({ text: `${text}${issues}`, data: { error: told }, isError: true });
  }
}

const taskParams = z.looseObject({ taskId: z.string() });
const taskResult = z.looseObject({ resultType: z.string() });

function addTasks(server: Server, callOf: (context: ServerContext) => AuthenticatedRequest): void {
  const method =
    (work: (context: Context, taskId: string) => Promise<{ resultType: string }>, reads = false) =>
    async ({ taskId }: z.output<typeof taskParams>, server: ServerContext) => {
      if (!declaresTasks(server.mcpReq.envelope)) throw tasksRequired();
      const call = callOf(server);
      const context = new Context(call, "modern", server);
      try {
        return await work(context, taskId);
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        const { broker, requestId } = call;
        const refused = toErrandError(error, broker.log, requestId, reads ? "GET" : "POST");
        throw toProtocolError(refused, requestId);
      }
    };
  const schemas = { params: taskParams, result: taskResult };
  server.setRequestHandler("tasks/get", schemas, method(getTask, true));
  server.setRequestHandler("tasks/update", schemas, method(updateTask));
  server.setRequestHandler("tasks/cancel", schemas, method(cancelTask));
}
