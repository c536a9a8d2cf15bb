/**
 * An MCP server with the broker's tools, for one HTTP request of either era. It uses the SDK's
 * low-level server, because the high-level one turns every error into a tool error, and cannot return a task for a tool
 * with an output schema.
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
import {
  type ClientState,
  declaresTasks,
  type Era,
  McpContext,
  TASKS_EXTENSION,
  tasksRequiredError,
} from "./context.ts";
import { toProtocolError, toToolError } from "./errors.ts";
import { EVENTS_EXTENSION, listEvents, listEventsParams, pollEvents, pollEventsParams } from "./events.ts";
import { taskParams } from "./params.ts";
import { readResource, resourceTemplates } from "./resources.ts";
import { cancelTask, getTask, updateTask } from "./tasks.ts";
import { type TaskHandle, type Tool, toCallToolResult } from "./tools/tool.ts";
import { TOOLS } from "./tools/tools.ts";

const INSTRUCTIONS =
  "Errand delegates tasks to other agents and returns their answers. To delegate: call discover_agents, then delegate_task (waits for the answer) or delegate_task_async and later wait_for_results with the cursor that it returned. Accepted work is never lost: if a call ends early, call check_task_status with the delegation_id instead of delegating again. To work as an agent: call poll_inbox, report_progress while you work, then complete_task, fail_task, request_input, wait_for_parts or release_task. For every error, error.recovery says what to do next.";
const LIST_TTL_MS = 300_000;

/** The engine checks clients' answers. Compiling schemas for each request would cost more than all other work. */
const noValidation = {
  getValidator<T>(_schema: JsonSchemaType): JsonSchemaValidator<T> {
    return () => ({ valid: false, data: undefined, errorMessage: "not offered" });
  },
};

function toListedTool({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
}: Tool): ListedTool {
  const listed: unknown = { name, title, description, inputSchema, outputSchema, annotations };
  if (!isSpecType.Tool(listed)) throw new TypeError(`${name} is not a valid MCP tool`);
  return listed;
}

const LISTED_TOOLS = TOOLS.map((tool) => ({ tool, listed: toListedTool(tool) }));
const TOOLS_BY_NAME = new Map(TOOLS.map((tool) => [tool.name, tool]));

const toolsFor = ({ kind }: Principal): ListedTool[] =>
  LISTED_TOOLS.filter(({ tool }) => tool.visibleTo.includes(kind)).map(({ listed }) => listed);

/** Additional tools and handlers, for tests of the protocol itself; no setting enables them. */
export interface McpTestExtension {
  readonly tools: readonly TestTool[];
  /** Called before the server is connected. */
  readonly extend: (server: Server, era: Era) => void;
}
export interface TestTool {
  readonly listed: ListedTool;
  readonly run: (
    args: Readonly<Record<string, unknown>>,
    context: McpContext,
    server: ServerContext,
  ) => Promise<CallToolResult | InputRequiredResult | TaskHandle>;
}

export type RunInTurn = <T>(request: AuthenticatedRequest, work: () => Promise<T>) => Promise<T>;

export interface ServerOptions {
  readonly era: Era;
  /** Finds the HTTP request of a message. */
  readonly requestOf: (context: ServerContext) => AuthenticatedRequest;
  /** Runs a tool call in its principal's turn, where the HTTP request's own turn is over. */
  readonly runInTurn?: RunInTurn;
  readonly extension?: McpTestExtension | undefined;
  /** The client of a session; absent, the request says who it is. */
  readonly client?: ClientState;
}

export function createServer(options: ServerOptions): Server {
  const { era, requestOf, extension } = options;
  const { runInTurn = (_request, work) => work() } = options;
  const server = new Server(
    { name: "errand", title: API_INFO.title, version: API_INFO.version },
    {
      capabilities: {
        tools: {},
        resources: {},
        ...(era === "modern" && { extensions: { [TASKS_EXTENSION]: {}, [EVENTS_EXTENSION]: {} } }),
      },
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: noValidation,
      inputRequired: { legacyShim: false },
      cacheHints: {
        "tools/list": { ttlMs: LIST_TTL_MS, cacheScope: "private" },
        "server/discover": { ttlMs: LIST_TTL_MS, cacheScope: "private" },
      },
    },
  );
  server.setRequestHandler("tools/list", (_request, context) => ({
    tools: [
      ...toolsFor(requestOf(context).principal),
      ...(extension?.tools.map(({ listed }) => listed) ?? []),
    ],
  }));
  server.setRequestHandler("tools/call", ({ params }, context) => {
    const request = requestOf(context);
    const tool = TOOLS_BY_NAME.get(params.name);
    const testTool = extension?.tools.find(({ listed }) => listed.name === params.name);
    if (testTool) {
      return testTool.run(params.arguments ?? {}, new McpContext(request, era, context), context);
    }
    if (!tool) {
      throw toProtocolError(
        new ErrandError("invalid_request", `There is no tool '${params.name}'.`, {
          details: { issues: [{ path: "name", reason: "not in tools/list" }] },
        }),
        request.requestId,
      );
    }
    const args = params.arguments ?? {};
    const client = options.client ?? { name: server.getClientVersion()?.name };
    return callTool(tool, args, new McpContext(request, era, context, client), runInTurn);
  });
  addResources(server, requestOf);
  if (era === "modern") addExtensions(server, requestOf);
  extension?.extend(server, era);
  return server;
}

function addResources(server: Server, requestOf: (context: ServerContext) => AuthenticatedRequest): void {
  // A list of all files of all delegations would help nobody.
  server.setRequestHandler("resources/list", () => ({ resources: [] }));
  server.setRequestHandler("resources/templates/list", (_request, context) => ({
    resourceTemplates: resourceTemplates(requestOf(context).broker.publicUrl()),
  }));
  server.setRequestHandler("resources/read", async ({ params }, context) => {
    const request = requestOf(context);
    try {
      return await readResource(request, params.uri);
    } catch (error) {
      const refused = toErrandError(error, request.broker.log, request.requestId, "GET");
      throw toProtocolError(refused, request.requestId);
    }
  });
}

async function callTool(tool: Tool, args: unknown, context: McpContext, runInTurn: RunInTurn) {
  const { request, broker } = context;
  try {
    const output = await runInTurn(request, async () => tool.run(args, context));
    return "result" in output ? output.result : toCallToolResult(output);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const refused = toErrandError(error, broker.log, request.requestId, tool.readOnly ? "GET" : "POST");
    const toolError = toToolError(refused, request.requestId);
    const { category, code, message, retryable, recovery } = toolError;
    const retry = retryable ? "A retry may succeed." : "Do not retry the same call.";
    const text = `${category} ${code}: ${message}\n${retry} What to do: ${recovery}`;
    const details = toolError.details === undefined ? "" : `\ndetails: ${JSON.stringify(toolError.details)}`;
    return toCallToolResult({ text: `${text}${details}`, data: { error: toolError }, isError: true });
  }
}

const extensionResult = z.looseObject({ resultType: z.string() });

function addExtensions(server: Server, requestOf: (context: ServerContext) => AuthenticatedRequest): void {
  const add = <Params>(
    name: string,
    params: z.ZodType<Params>,
    method: (context: McpContext, given: Params) => Promise<{ resultType: string }>,
    { readOnly = true, isOfTasks = false } = {},
  ): void =>
    server.setRequestHandler(name, { params, result: extensionResult }, async (given, of: ServerContext) => {
      if (isOfTasks && !declaresTasks(of.mcpReq.envelope)) throw tasksRequiredError();
      const request = requestOf(of);
      try {
        return await method(new McpContext(request, "modern", of), given);
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        const { broker, requestId } = request;
        const refused = toErrandError(error, broker.log, requestId, readOnly ? "GET" : "POST");
        throw toProtocolError(refused, requestId);
      }
    });
  add("tasks/get", taskParams, (context, { taskId }) => getTask(context, taskId), { isOfTasks: true });
  const changes = { readOnly: false, isOfTasks: true };
  add("tasks/update", taskParams, (context, { taskId }) => updateTask(context, taskId), changes);
  add("tasks/cancel", taskParams, (context, { taskId }) => cancelTask(context, taskId), changes);
  add("events/list", listEventsParams, async () => listEvents());
  add("events/poll", pollEventsParams, pollEvents);
}
