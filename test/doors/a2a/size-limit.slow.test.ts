/** Streams stay below the 4 MiB that the SDK's client accepts as a line, whatever the task contains. */
import { describe, expect, test } from "vitest";
import { limitTask, limitUpdate, MAX_LINE_BYTES } from "../../../src/doors/a2a/tasks/size-limit.ts";
import type { TaskJson } from "../../../src/doors/a2a/tasks/task.ts";
import type { Artifact, Message } from "../../../src/schema/a2a.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { strictFetch } from "../../support/a2a-schema/check.ts";
import { until } from "../../support/until.ts";
import {
  BINDINGS,
  collect,
  collectFromStart,
  leaseOf,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  textOf,
} from "./support.ts";

const MIB = 1024 * 1024;
const LARGE = { maxBodyBytes: 8 * MIB };

/** `times` the maximum of empty parts that one request may send. */
async function sendParts(
  agent: { call: (method: string, path: string, body: unknown) => Promise<{ status: number }> },
  lease: string,
  artifactId: string,
  times: number,
): Promise<void> {
  const parts = Array.from({ length: LIMITS.parts.value }, () => ({ text: "" }));
  for (let time = 0; time < times; time += 1) {
    const chunk = { artifact: { artifactId, parts }, append: time > 0 };
    expect((await agent.call("POST", `/v1/leases/${lease}/artifacts`, chunk)).status).toBe(200);
  }
}

describe.each(BINDINGS)("%s", (binding) => {
  test("streams the largest artifacts that a delegation can have", async () => {
    const { url, agent, caller } = await startA2aBroker(LARGE);
    const client = await sdkClient(url, "scout", caller.token, binding);
    const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("work"))));
    const { lease, id } = await leaseOf(agent);
    const text = 'é"\\'.repeat(MIB / 8);
    for (const artifactId of ["a", "b", "c"]) {
      const sent = await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
        artifact: { artifactId, parts: [{ text }] },
      });
      expect(sent.status).toBe(200);
    }
    // In the form of 0.3, these small parts are more than twice as large.
    await sendParts(agent, lease, "many", 6);
    await until(() => stream.events.length === 11);
    const snapshot = collect(client.resubscribeTask({ tenant: "", id }));
    await until(() => snapshot.events.length > 0 || !snapshot.isOpen());
    await agent.reply(lease, { text: "done" });
    await Promise.all([stream.ended, snapshot.ended]);
    expect(snapshot.lines().at(-1)).toBe("COMPLETED done");
    const { payload } = snapshot.events[0] ?? {};
    const artifacts = payload?.$case === "task" ? payload.value.artifacts : [];
    expect(artifacts.map(({ artifactId }) => artifactId)).toEqual(["a", "b", "c", "many"]);
    const given = artifacts.filter(({ metadata }) => metadata?.truncated);
    expect(given.length).toBeGreaterThan(0);
    const whole = await client.getTask({ tenant: "", id });
    expect(whole.artifacts.slice(0, 3).map(({ parts }) => textOf(parts))).toEqual([text, text, text]);
  }, 120_000);
});

test("a reference leads to the whole task", async () => {
  const { url, agent, caller } = await startA2aBroker(LARGE);
  const client = await sdkClient(url, "scout", caller.token);
  const live = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("work"))));
  const { lease, id } = await leaseOf(agent);
  await sendParts(agent, lease, "a", 5);
  const snapshot = collect(client.resubscribeTask({ tenant: "", id }));
  await until(() => snapshot.events.length > 0);
  const { payload } = snapshot.events[0] ?? {};
  const part = payload?.$case === "task" ? payload.value.artifacts[0]?.parts[0]?.content : undefined;
  if (part?.$case !== "url") throw new Error("no reference");
  const response = await strictFetch(part.value, {
    headers: { authorization: `Bearer ${caller.token}`, "a2a-version": "1.0" },
  });
  expect((await response.json()).artifacts[0].parts).toHaveLength(50_000);
  await agent.reply(lease);
  await Promise.all([live.ended, snapshot.ended]);
}, 120_000);

const URL_OF = "http://broker/a2a/scout/rest/tasks/x";
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const message = (size: number, more: Partial<Message> = {}): Message => ({
  messageId: "m",
  role: "ROLE_AGENT",
  parts: [{ text: "x".repeat(size) }],
  ...more,
});
const artifact = (artifactId: string, size: number): Artifact => ({
  artifactId,
  parts: [{ text: "x".repeat(size) }],
});
const task = (more: Partial<TaskJson>): TaskJson => ({
  id: "x",
  contextId: "c",
  status: { state: "TASK_STATE_WORKING", timestamp: "2026-01-01T00:00:00.000Z" },
  artifacts: [],
  history: [],
  metadata: { mine: 1, errand: { version: 3 } },
  ...more,
});

test("a task that fits is unchanged", () => {
  const small = task({ history: [message(10)], artifacts: [artifact("a", MIB)] });
  expect(limitTask(small, URL_OF)).toBe(small);
});

test("the history is removed first, then the status message is shortened, then the largest artifacts", () => {
  const spoken = limitTask(task({ history: [message(3 * MIB)], artifacts: [artifact("a", MIB)] }), URL_OF);
  expect([spoken.history, spoken.artifacts[0]?.parts[0]?.url]).toEqual([[], undefined]);
  expect(spoken.metadata).toEqual({ mine: 1, errand: { version: 3, truncated: true } });
  const status = { ...task({}).status, message: message(2 * MIB) };
  const repeated = limitTask(task({ status, artifacts: [artifact("reply", 2 * MIB)] }), URL_OF);
  expect(repeated.status.message?.metadata).toEqual({ truncated: true });
  expect(repeated.artifacts[0]?.metadata).toBeUndefined();
  const many = limitTask(
    task({ artifacts: [artifact("a", MIB), artifact("b", 3 * MIB), artifact("c", 1000)] }),
    URL_OF,
  );
  expect(many.artifacts.map(({ parts }) => parts[0]?.url)).toEqual([undefined, URL_OF, undefined]);
  expect(bytesOf(many)).toBeLessThan(MAX_LINE_BYTES);
});

test("a question of any length keeps its ids", () => {
  const interrupt = {
    id: "int_1",
    kind: "input",
    requests: [{ requestId: "q", message: message(2 * MIB) }],
  };
  const metadata = { errand: { version: 3, interrupt } };
  const status = { ...task({}).status, message: message(2 * MIB) };
  const wanted = { id: "int_1", kind: "input", requests: [{ requestId: "q" }] };
  expect(limitTask(task({ status, metadata }), URL_OF).metadata.errand).toMatchObject({ version: 3 });
  const huge = {
    errand: { interrupt: { ...interrupt, requests: [{ requestId: "q", message: message(4 * MIB) }] } },
  };
  const cut = limitTask(task({ status, metadata: huge }), URL_OF);
  expect(cut.metadata.errand).toMatchObject({ interrupt: wanted });
  expect(bytesOf(cut)).toBeLessThan(MAX_LINE_BYTES);
  const update = limitUpdate(
    { statusUpdate: { taskId: "x", contextId: "c", status, metadata: huge } },
    URL_OF,
  );
  expect(bytesOf(update)).toBeLessThan(MAX_LINE_BYTES);
  expect(JSON.stringify(update)).toContain('"requestId":"q"');
});

test("when even references do not fit, the last artifacts are omitted and counted", () => {
  const artifacts = Array.from({ length: 70_000 }, (_, at) => artifact(`a${at}`, 0));
  const cut = limitTask(task({ artifacts }), URL_OF);
  expect(bytesOf(cut)).toBeLessThan(MAX_LINE_BYTES);
  expect(cut.artifacts.length).toBeGreaterThan(1_000);
  expect(cut.metadata.errand).toMatchObject({
    truncated: true,
    artifactsLeftOut: 70_000 - cut.artifacts.length,
  });
});
