/**
 * An ordinary A2A server that knows nothing of Errand: it asks for approval, then deploys what it is told. With
 * `errand relay --agent deployer --to http://127.0.0.1:9999` beside it, it works on a broker's delegations. Usage:
 * a2a-server.ts [PORT]. Limit: JSON-RPC with streaming, tasks in memory; it deploys nothing.
 */
import { createServer } from "node:http";
import { AgentCard, Task, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from "@a2a-js/sdk/server";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: a2a-server.ts [PORT]

Runs an ordinary A2A server, independent of Errand, on port 9999 of this machine.
`);
  process.exit(0);
}

const executor: AgentExecutor = {
  async execute({ taskId, contextId, task, userMessage }, bus) {
    const status = (state: string, text: string) => {
      const message = { messageId: crypto.randomUUID(), role: "ROLE_AGENT", parts: [{ text }] };
      const update = { taskId, contextId, status: { state: `TASK_STATE_${state}`, message } };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(update)));
    };
    const [part] = userMessage.parts;
    const text = part?.content?.$case === "text" ? part.content.value : "";
    const begun = Task.fromJSON({ id: taskId, contextId, status: { state: "TASK_STATE_WORKING" } });
    bus.publish(AgentEvent.task(task ?? { ...begun, history: [userMessage] }));
    if (!task) status("INPUT_REQUIRED", `Deploy ${text}?`);
    else if (userMessage.metadata?.decision === "approve") status("COMPLETED", "deployed");
    else status("REJECTED", "not deployed");
    bus.finished();
  },
  async cancelTask(taskId, bus) {
    const update = { taskId, status: { state: "TASK_STATE_CANCELED" } };
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(update)));
  },
};

const server = createServer(async (request, response) => {
  if (request.method === "GET") {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(AgentCard.toJSON(card)));
    return;
  }
  let body = "";
  for await (const chunk of request) body += chunk;
  const answer = await rpc.handle(body, new ServerCallContext({ requestedVersion: "1.0" }));
  if (!(Symbol.asyncIterator in answer)) {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
    return;
  }
  response.setHeader("content-type", "text/event-stream");
  for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end();
});
await new Promise<void>((resolve) => server.listen(Number(process.argv[2] ?? 9999), "127.0.0.1", resolve));
const address = server.address();
const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;

const card = AgentCard.fromJSON({
  name: "deployer",
  description: "deploys what it is told, after an approval",
  version: "1",
  supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "deploy", name: "deploy", description: "deploys a release", tags: ["release"] }],
});
const rpc = new JsonRpcTransportHandler(new DefaultRequestHandler(card, new InMemoryTaskStore(), executor));
process.stdout.write(`an A2A server at ${url}\n`);

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
