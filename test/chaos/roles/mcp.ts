/**
 * MCP, both sides: a caller that delegates with tools, and an agent that works with tools, by requests of 2026-07-28.
 */
import { z } from "zod";
import type { Ending } from "../recorder.ts";
import type { Facts } from "../rows.ts";
import { keyOf, MCP_AGENT, taskOf } from "../setup.ts";
import { fenceOf } from "./agent.ts";
import type { Part } from "./part.ts";

const MODERN = "2026-07-28";
const CALLER = "caller:mcp";
const WORKER = `agent:${MCP_AGENT}`;

const answerSchema = z.looseObject({
  result: z
    .looseObject({ isError: z.boolean().optional(), structuredContent: z.looseObject({}).optional() })
    .optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});
/** The error of a tool's answer, in either of its places. */
const faultSchema = z.looseObject({
  error: z.looseObject({ code: z.string() }).optional(),
  code: z.string().optional(),
});

interface Answered {
  readonly ending: Ending;
  readonly data: unknown;
}

let last = 0;

async function tool(
  part: Part,
  as: string,
  name: string,
  args: Record<string, unknown>,
  holdSeconds = 0,
): Promise<Answered> {
  last += 1;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": { name: "chaos", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const { phase, status, code, body } = await part.send({
    as,
    path: "/mcp",
    headers: {
      accept: "application/json",
      "mcp-protocol-version": MODERN,
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: { jsonrpc: "2.0", id: last, method: "tools/call", params: { _meta, name, arguments: args } },
    holdSeconds,
  });
  if (phase !== "ok") return { ending: { phase, status, ...(code !== undefined && { code }) }, data: null };
  const { result, error } = answerSchema.parse(body);
  if (result !== undefined && result.isError !== true) {
    return { ending: { phase: "ok", status }, data: result.structuredContent };
  }
  const fault = faultSchema.safeParse(result?.structuredContent).data;
  const why = fault?.error?.code ?? fault?.code ?? error?.message ?? "error";
  const passing = /unavailable|overloaded|shutting_down|internal/.test(why);
  return { ending: { phase: passing ? "info" : "fail", status: 200, code: why }, data: null };
}

async function record(
  part: Part,
  op: string,
  facts: Facts,
  send: () => Promise<Answered>,
  read: (data: unknown) => Facts,
) {
  let answered: Answered | undefined;
  await part.recorder.call(op, facts, async () => {
    answered = await send();
    const { ending, data } = answered;
    return ending.phase === "ok" ? { ...ending, ...read(data) } : ending;
  });
  return answered;
}

export async function runMcp(part: Part): Promise<void> {
  await Promise.all([delegating(part), working(part), working(part)]);
}

const madeSchema = z.looseObject({ delegation_id: z.string(), state: z.string() });

async function delegating(part: Part): Promise<void> {
  for (let n = 0; !part.quiet && !part.finished; n += 1) {
    const key = `mcp-${part.setup.life}-${n}`;
    const wait = part.random.chance(0.3);
    const args = {
      ...{ agent: MCP_AGENT, task: taskOf(key), idempotency_key: key, ttl_seconds: 600 },
      ...(wait && { wait_seconds: 3 }),
    };
    const name = wait ? "delegate_task" : "delegate_task_async";
    for (let tries = 0; tries < 20 && !part.finished; tries += 1) {
      const answered = await record(
        part,
        "delegate",
        { as: CALLER, key, target: MCP_AGENT, via: "mcp" },
        () => tool(part, CALLER, name, args, 3),
        (data) => {
          const { delegation_id: id, state } = madeSchema.parse(data);
          return { id, state };
        },
      );
      if (answered?.ending.phase !== "info") break;
      await part.sleep(part.random.between(100, 600));
    }
    await part.sleep(part.random.between(0, 2_000 / part.setup.rate));
  }
  part.idle();
}

const tasksSchema = z.looseObject({
  tasks: z.array(
    z.looseObject({
      lease_id: z.string(),
      attempt: z.number(),
      delegation_id: z.string(),
      task: z.looseObject({ text: z.string().optional() }),
    }),
  ),
});
const endedSchema = z.looseObject({ outcome: z.string(), state: z.string() });

async function working(part: Part): Promise<void> {
  while (!part.finished) {
    const args = { wait_seconds: 3, lease_seconds: part.setup.leaseSeconds };
    const polled = await record(
      part,
      "poll_inbox",
      { as: WORKER },
      () => tool(part, WORKER, "poll_inbox", args, 3),
      () => ({}),
    );
    if (polled?.ending.phase !== "ok") {
      await part.sleep(part.random.between(50, 300));
      continue;
    }
    for (const { lease_id: lease, delegation_id: id, task } of tasksSchema.parse(polled.data).tasks) {
      const facts = { id, lease, fence: fenceOf(lease) };
      const key = keyOf(task.text ?? "");
      if (part.random.chance(0.3)) {
        await record(
          part,
          "heartbeat",
          facts,
          () => tool(part, WORKER, "report_progress", { lease_id: lease, message: "on it" }),
          () => ({}),
        );
      }
      const text = `completed ${key} ${facts.fence}`;
      for (let tries = 0; tries < 20 && !part.finished; tries += 1) {
        const done = await record(
          part,
          "reply",
          { ...facts, text, wants: "completed" },
          () => tool(part, WORKER, "complete_task", { lease_id: lease, text }),
          (data) => {
            const { outcome, state } = endedSchema.parse(data);
            return { outcome, state };
          },
        );
        if (done?.ending.phase !== "info") break;
        await part.sleep(part.random.between(100, 500));
      }
    }
  }
}
