/**
 * The conformance kit's task tools as real delegations, and the agent that completes them, so that the kit checks the
 * broker's own tasks. One agent serves all of them; a second one has no worker.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { inputRequired } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { type McpContext, tasksRequiredError } from "../../../src/doors/mcp/context.ts";
import type { TestTool } from "../../../src/doors/mcp/server.ts";
import { toCallToolResult } from "../../../src/doors/mcp/tools/tool.ts";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { client } from "../broker.ts";
import { fixture, text } from "./content.ts";
import { filled, form } from "./input.ts";

const AGENT = "fixture";
const NOBODY = "nobody";
/** Long enough to be seen as working, short enough to wait for the end. */
const NOBODY_SECONDS = 0.2;

interface Work {
  readonly seconds?: number;
  readonly fails?: boolean;
  readonly says?: string | undefined;
  /** The questions to ask, each in its own request. */
  readonly asks?: readonly string[];
}

const [delegateTask] = TOOLS;

/** Calls delegate_task: a client that supports tasks gets a task, any other waits for the end. */
async function delegate(context: McpContext, work: Work, more: Record<string, unknown> = {}) {
  if (delegateTask?.name !== "delegate_task") throw new Error("the first tool is not the one that delegates");
  const answer = await delegateTask.run({ agent: AGENT, task: JSON.stringify(work), ...more }, context);
  return "result" in answer ? answer.result : toCallToolResult(answer);
}

const SECONDS: TestTool["listed"]["inputSchema"] = {
  type: "object",
  properties: { seconds: { type: "number" }, label: { type: "string" } },
};

export const taskTools: readonly TestTool[] = [
  fixture("greet", async ({ name }) => text(`Hello, ${name}!`)),
  fixture("slow_compute", (args, context) => delegate(context, { seconds: Number(args.seconds) }), SECONDS),
  fixture("failing_job", async (_args, context) => {
    if (!context.supportsTasks) throw tasksRequiredError();
    return delegate(context, { fails: true });
  }),
  fixture("protocol_error_job", (_args, context) =>
    delegate(context, {}, { agent: NOBODY, ttl_seconds: NOBODY_SECONDS }),
  ),
  fixture("confirm_delete", (_args, context) => delegate(context, { asks: ["confirm"] })),
  fixture("multi_input", (_args, context) => delegate(context, { asks: ["name", "confirm"] })),
  fixture("test_tool_with_task", async (_args, context) => {
    const says = filled(context.inputResponses, "user_name", "name");
    if (says !== undefined) return delegate(context, { says });
    return inputRequired({ inputRequests: { user_name: form("What is your name?", "name") } });
  }),
];

/** The kit's answer to any question. */
const FORM = { type: "object", properties: { name: { type: "string" }, confirm: { type: "boolean" } } };

/** Polls until the test ends. */
export async function startFixtureAgent(url: string): Promise<void> {
  const api = client(url);
  await api.agent(AGENT);
  await api.agent(NOBODY);
  const over = new AbortController();
  onTestFinished(() => over.abort());

  const work = async (lease: string, { seconds = 0, fails = false, says = "done", asks = [] }: Work) => {
    if (asks.length > 0) {
      const requests = asks.map((name) => ({ request_id: name, text: `Give ${name}`, schema: FORM }));
      return api.interrupt(lease, { requests });
    }
    await sleep(seconds * 1000, undefined, { signal: over.signal });
    const error = { code: "fixture_failed", message: "as it was told to" };
    return api.reply(lease, fails ? { state: "failed", text: undefined, error } : { text: says });
  };
  const polling = async () => {
    while (!over.signal.aborted) {
      const { body } = await api.lease(AGENT, { wait_seconds: 20, max: 8 });
      for (const { lease_id, delegation, request } of body?.leases ?? []) {
        const [part] = request.params.message.parts;
        // Returned work carries the answer as its message.
        const task: Work = delegation.history.length > 0 ? {} : JSON.parse(part.text);
        void work(lease_id, task).catch(() => {});
      }
    }
  };
  // The poll ends with the gateway.
  void polling().catch(() => {});
}
