/**
 * An A2A client with the official SDK: it sends a message, prints the updates, and approves or denies questions on the
 * way. It keeps only the task's id, so the answer could come tomorrow, from another process. Needs ERRAND_URL and a
 * caller's ERRAND_TOKEN; try it with release.ts.
 * Limit: one question at a time; docs/a2a.md describes how to answer several.
 */
import { randomUUID } from "node:crypto";
import { type Message, type StreamResponse, TaskState } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: a2a-client.ts [AGENT] [TEXT] [approve|deny]

Sends a message to an agent (release) with the official A2A SDK, and answers its questions. Reads ERRAND_URL and
ERRAND_TOKEN (a caller's).
`);
  process.exit(0);
}

const [, , name = "release", text = "v1.4.0", decision = "approve"] = process.argv;
const { ERRAND_URL = "http://127.0.0.1:4180", ERRAND_TOKEN = "" } = process.env;

const withToken: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${ERRAND_TOKEN}`);
  return fetch(input, { ...init, headers });
};
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl: withToken })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl: withToken }),
});
// With the trailing slash: the card's path is resolved against it.
const client = await factory.createFromUrl(`${ERRAND_URL}/a2a/${name}/`);

const textIn = (parts: Message["parts"] = []): string =>
  parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join(" ");

function show({ payload }: StreamResponse): void {
  if (payload?.$case === "artifactUpdate") {
    process.stdout.write(
      `artifact ${payload.value.artifact?.name}: ${textIn(payload.value.artifact?.parts)}\n`,
    );
  } else if (payload?.$case === "task" || payload?.$case === "statusUpdate") {
    const { state = TaskState.UNRECOGNIZED, message } = payload.value.status ?? {};
    const said = textIn(message?.parts);
    process.stdout.write(`${TaskState[state].replace("TASK_STATE_", "")}${said === "" ? "" : `: ${said}`}\n`);
  }
}

/** Sends a message, prints the updates, and returns the task's last state. */
async function send(words: string, more: Partial<Message> = {}): Promise<{ id: string; state: TaskState }> {
  const message: Message = {
    messageId: randomUUID(),
    contextId: "",
    taskId: "",
    role: 1,
    parts: [{ content: { $case: "text", value: words }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
  const now = { id: "", state: TaskState.UNRECOGNIZED };
  const params = { tenant: "", message, configuration: undefined, metadata: undefined };
  for await (const event of client.sendMessageStream(params)) {
    show(event);
    if (event.payload?.$case === "task") now.id = event.payload.value.id;
    if (event.payload?.$case === "task" || event.payload?.$case === "statusUpdate") {
      now.state = event.payload.value.status?.state ?? now.state;
    }
  }
  return now;
}

let { id, state } = await send(text);
while (state === TaskState.TASK_STATE_INPUT_REQUIRED) {
  process.stdout.write(`answering ${decision}\n`);
  ({ id, state } = await send(decision, { taskId: id, metadata: { decision } }));
}
process.exitCode = state === TaskState.TASK_STATE_COMPLETED ? 0 : 1;
