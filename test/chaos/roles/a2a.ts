/**
 * A2A, both sides: a caller that sends, streams and subscribes again when its stream breaks, and a worker behind the
 * broker's A2A server. Limit: JSON-RPC 1.0; a send has no idempotency key, so one without an answer may have created
 * a task or not.
 */
import { createParser } from "eventsource-parser";
import { z } from "zod";
import type { Ending } from "../recorder.ts";
import { A2A_AGENT, keyOf, taskOf } from "../setup.ts";
import { fenceOf, grantFacts, grantsSchema, replyFacts } from "./agent.ts";
import type { Part } from "./part.ts";

const CALLER = "caller:a2a";
const WORKER = `agent:${A2A_AGENT}`;
const PATH = `/a2a/${A2A_AGENT}/rpc`;
const OVER = /COMPLETED|FAILED|CANCELED|REJECTED/;

const statusSchema = z.looseObject({ state: z.string() });
const taskSchema = z.looseObject({ id: z.string(), status: statusSchema });
const rpcSchema = z.looseObject({
  result: z
    .looseObject({
      task: taskSchema.optional(),
      // The answer to a blocking send, because the worker answers with a bare message.
      message: z.looseObject({ taskId: z.string() }).optional(),
      statusUpdate: z.looseObject({ taskId: z.string(), status: statusSchema }).optional(),
      artifactUpdate: z.looseObject({ taskId: z.string() }).optional(),
    })
    .optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});
const rpc = (method: string, params: unknown) => ({ jsonrpc: "2.0", id: 1, method, params });
const HEADERS = { "a2a-version": "1.0" };

export async function runA2a(part: Part): Promise<void> {
  await Promise.all([calling(part), working(part), working(part)]);
}

async function calling(part: Part): Promise<void> {
  const stories = new Set<Promise<void>>();
  for (let n = 0; !part.quiet && !part.finished; n += 1) {
    const key = `a2a-${part.setup.life}-${n}`;
    const story = part.random.chance(0.5) ? send(part, key) : stream(part, key);
    stories.add(story);
    void story.finally(() => stories.delete(story));
    await part.sleep(part.random.between(0, 2_000 / part.setup.rate));
  }
  await Promise.all(stories);
  part.idle();
}

const messageOf = (key: string) => ({
  messageId: crypto.randomUUID(),
  role: "ROLE_USER",
  parts: [{ text: taskOf(key) }],
});

async function send(part: Part, key: string): Promise<void> {
  const configuration = { returnImmediately: part.random.chance(0.5) };
  await part.recorder.call(
    "delegate",
    { as: CALLER, key, target: A2A_AGENT, via: "a2a" },
    async (): Promise<Ending> => {
      const body = rpc("SendMessage", { message: messageOf(key), configuration });
      const {
        phase,
        status,
        body: answer,
      } = await part.send({ as: CALLER, path: PATH, headers: HEADERS, body, holdSeconds: 50 });
      if (phase !== "ok") return { phase, status };
      const { result, error } = rpcSchema.parse(answer);
      const id = result?.task?.id ?? result?.message?.taskId;
      // An internal error of JSON-RPC leaves the outcome open, as a 5xx does.
      if (id === undefined)
        return { phase: error?.code === -32603 ? "info" : "fail", status: 200, code: error?.message ?? "" };
      return { phase: "ok", id };
    },
  );
}

let streams = 0;

async function stream(part: Part, key: string): Promise<void> {
  let id: string | undefined;
  let over = false;
  await part.recorder.call(
    "delegate",
    { as: CALLER, key, target: A2A_AGENT, via: "a2a-stream" },
    async (): Promise<Ending> => {
      const end = await read(part, rpc("SendStreamingMessage", { message: messageOf(key) }));
      id = end.id;
      over = end.over;
      return id === undefined ? { phase: "info" } : { phase: "ok", id };
    },
  );
  for (let tries = 0; id !== undefined && !over && tries < 60 && !part.finished; tries += 1) {
    await part.sleep(part.random.between(100, 700));
    const end = await read(part, rpc("SubscribeToTask", { id }));
    // A finished task has no subscription.
    over = end.over || end.refused;
  }
}

interface End {
  readonly id: string | undefined;
  readonly over: boolean;
  readonly refused: boolean;
}

async function read(part: Part, body: unknown): Promise<End> {
  streams += 1;
  const name = `${part.setup.proc}/${part.setup.life}/${streams}`;
  let id: string | undefined;
  let over = false;
  let refused = false;
  const take = (data: unknown) => {
    const { result, error } = rpcSchema.parse(data);
    const task =
      result?.task ?? (result?.statusUpdate && { ...result.statusUpdate, id: result.statusUpdate.taskId });
    if (error !== undefined) refused = error.code !== -32603;
    if (task === undefined) return;
    id = task.id;
    const { state } = task.status;
    over ||= OVER.test(state);
    part.recorder.note({ row: "a2a", id, stream: name, state });
  };
  // Some streams are left before their end.
  const patience = part.random.chance(0.2) ? part.random.between(50, 1_500) : 20_000;
  const follow = async (signal: AbortSignal) => {
    const response = await fetch(`${part.gateway()}${PATH}`, {
      method: "POST",
      headers: {
        ...HEADERS,
        authorization: `Bearer ${part.token(CALLER)}`,
        "content-type": "application/json",
        accept: "text/event-stream",
      },
      body: JSON.stringify(body),
      signal,
    });
    const streamed = response.headers.get("content-type")?.includes("event-stream") === true;
    if (!streamed) take(await response.json());
    else if (response.body) {
      const parser = createParser({ onEvent: ({ data }) => take(JSON.parse(data)) });
      const decoder = new TextDecoder();
      for await (const bytes of response.body) parser.feed(decoder.decode(bytes, { stream: true }));
    }
  };
  // Cut, refused, or left: the caller subscribes again.
  await part.within(patience, follow).catch(() => undefined);
  return { id, over, refused };
}

/** Replies as an agent that only speaks A2A: a bare message, matched by the lease in its envelope. */
async function working(part: Part): Promise<void> {
  while (!part.finished) {
    const answer = await part.call(
      "lease",
      { target: A2A_AGENT },
      {
        as: WORKER,
        path: `/v1/agents/${A2A_AGENT}/leases`,
        body: { wait_seconds: 3, lease_seconds: part.setup.leaseSeconds },
        holdSeconds: 3,
      },
      grantFacts,
    );
    if (answer.phase !== "ok") {
      await part.sleep(part.random.between(50, 300));
      continue;
    }
    for (const { lease_id: lease, delegation } of grantsSchema.parse(answer.body).leases) {
      const key = keyOf(delegation.message.parts[0]?.text ?? "");
      const fence = fenceOf(lease);
      const text = `completed ${key} ${fence}`;
      await part.sleep(part.random.between(0, 300));
      const message = { messageId: `reply-${lease}`, role: "ROLE_AGENT", parts: [{ text }] };
      await part.insist(
        "reply",
        { id: delegation.id, lease, fence, key, text, wants: "completed" },
        {
          as: WORKER,
          path: `/v1/agents/${A2A_AGENT}/replies`,
          body: { jsonrpc: "2.0", id: lease, result: { message } },
        },
        replyFacts,
      );
    }
  }
}
